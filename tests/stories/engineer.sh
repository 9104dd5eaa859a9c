# an engineer has two FMUs, and wants to know by lunch whether to believe them
hocket show first.fmu
hocket probe first.fmu
WIRES="--connect first.x=second.x --connect first.v=second.v --connect second.force=first.force"
hocket check first.fmu second.fmu $WIRES --step "100 ms" --stop 50
hocket run first.fmu second.fmu $WIRES --step "100 ms" --stop 50 --folder runs/coarse --quiet
hocket run first.fmu second.fmu $WIRES --step "10 ms" --stop 50 --folder runs/fine --quiet
hocket check runs/coarse --json estimate.json
hocket compare runs/fine runs/coarse --relative 0.02 --plot apart.png
hocket report runs/coarse --output coarse.html
hocket export runs/fine motion.csv
