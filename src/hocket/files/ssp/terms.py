"""Words of the standard that reading and writing share.

In:  nothing
Out: namespaces, media types, names of files and of interfaces
"""

NAMESPACES = {
    prefix: f"http://ssp-standard.org/SSP1/SystemStructure{name}"
    for prefix, name in (("ssd", "Description"), ("ssc", "Common"), ("ssv", "ParameterValues"))
}
SSD, SSC, SSV = (f"{{{namespace}}}" for namespace in NAMESPACES.values())
"""In front of the names of elements."""
DEFAULT = "SystemStructure.ssd"
FMU = "application/x-fmu-sharedlibrary"
PACKAGE = "application/x-ssp-package"
DEFINITION = "application/x-ssp-definition"
SET = "application/x-ssp-parameter-set"
MAPPING = "application/x-ssp-parameter-mapping"
INTERFACES = {"any": "auto", "CoSimulation": "co-simulation", "ModelExchange": "model-exchange"}
"""What a component says of how it is to be run, and what hocket calls it."""
LOOKUP = "hocket.files.ssp.lookup:Lookup"
"""The model that stands for a table in a connection."""
