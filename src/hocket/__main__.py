"""`python -m hocket` is `hocket`.

In:  the command line
Out: an exit code
"""

from hocket.cli import main

main()
