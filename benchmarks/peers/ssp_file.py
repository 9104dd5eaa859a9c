"""A system written as an SSP archive.

In:  a System
Out: an .ssp file (SSP 1.0), without parameters
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

from system import System

SSD, SSC = (f"http://ssp-standard.org/SSP1/SystemStructure{kind}" for kind in ("Description", "Common"))


def written(system: System) -> Path:
    """Write it into the folder of the system."""
    ET.register_namespace("ssd", SSD)
    ET.register_namespace("ssc", SSC)
    root = ET.Element(f"{{{SSD}}}SystemStructureDescription", name="peers", version="1.0")
    top = ET.SubElement(root, f"{{{SSD}}}System", name="peers")
    elements = ET.SubElement(top, f"{{{SSD}}}Elements")
    for unit in system.units:
        source = f"resources/{Path(unit.fmu).name}"
        component = ET.SubElement(
            elements,
            f"{{{SSD}}}Component",
            name=unit.name,
            type="application/x-fmu-sharedlibrary",
            source=source,
        )
        connectors = ET.SubElement(component, f"{{{SSD}}}Connectors")
        for kind, names in (("input", unit.inputs), ("output", unit.outputs)):
            for name in names:
                connector = ET.SubElement(connectors, f"{{{SSD}}}Connector", name=name, kind=kind)
                ET.SubElement(connector, f"{{{SSC}}}Real")
    connections = ET.SubElement(top, f"{{{SSD}}}Connections")
    for wire in system.wires:
        ET.SubElement(
            connections,
            f"{{{SSD}}}Connection",
            startElement=wire.source,
            startConnector=wire.output,
            endElement=wire.target,
            endConnector=wire.input,
        )
    path = system.folder / "system.ssp"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("SystemStructure.ssd", ET.tostring(root, encoding="utf-8", xml_declaration=True))
        for fmu in dict.fromkeys(unit.fmu for unit in system.units):
            archive.write(fmu, f"resources/{Path(fmu).name}")
    return path
