# somebody keeps a coupled model right in every commit
set -e
hocket new plant.toml
hocket plan plant.toml > plan.txt
hocket check plant.toml --max-error "5 %" --json verdict.json
hocket run plant.toml --strict --folder runs/ci --csv result.csv --json run.json
hocket compare reference.csv runs/ci --relative 1e-6 --json compared.json
hocket report runs/ci --output page.html
