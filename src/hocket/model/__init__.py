"""What is coupled with what: ports, connections, scenarios, levels and experiments, as frozen data.

In:  names, units and recipes of simulators
Out: data and protocols; nothing is planned or opened here
"""
