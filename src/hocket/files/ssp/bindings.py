"""Parameter bindings: where the sets and mappings are, inline or in files.

In:  the <ParameterBinding> elements of a system or component
Out: Settings, by the names in that element
"""

from __future__ import annotations

from pathlib import Path

from hocket.files.ssp.nodes import ImportFindings, Node
from hocket.files.ssp.package import Package
from hocket.files.ssp.parameter_sets import read_parameter_set
from hocket.files.ssp.parts import Document
from hocket.files.ssp.transformations import ParameterSetting, binding_settings, read_mapping
from hocket.files.ssp.vocabulary import MAPPING, SET


def read_bindings(
    element: Node, document: Document, component: Path | None, findings: ImportFindings
) -> list[tuple[str, ParameterSetting]]:
    """Return what the bindings of an element set; `component` is where `sourceBase="component"` starts."""
    found: list[tuple[str, ParameterSetting]] = []
    for node in element.all("ParameterBindings", "ParameterBinding"):
        if node.get("type") not in ("", SET):
            findings.fault(node, f"a parameter binding has the type `{node.get('type')}`", f"`{SET}`")
            continue
        values = _binding_content(
            node, node.child("ParameterValues"), "ParameterSet", document, component, findings
        )
        if values is None:
            continue
        mapped = None
        mapping = node.child("ParameterMapping")
        if mapping is not None:
            if mapping.get("type") not in ("", MAPPING):
                what = f"a parameter mapping has the type `{mapping.get('type')}`"
                findings.fault(mapping, what, f"`{MAPPING}`")
                continue
            inside = _binding_content(mapping, mapping, "ParameterMapping", document, component, findings)
            if inside is None:
                continue
            mapped = read_mapping(inside, findings)
        parameters = read_parameter_set(values, document.units, findings)
        found += binding_settings(parameters, node.attributes.get("prefix", ""), mapped, findings)
    return found


def _binding_content(
    node: Node,
    inline: Node | None,
    tag: str,
    document: Document,
    component: Path | None,
    findings: ImportFindings,
) -> Node | None:
    """Return the set or mapping that a node refers to, or that stands in it; None after noting a fault."""
    source = node.get("source")
    if not source:
        inside = inline.child(tag) if inline else None
        if inside is None:
            findings.fault(node, f"a <{node.tag}> without a source and without content", f"a <{tag}>")
        return inside
    base, package = document.folder, document.package
    if node.get("sourceBase") == "component":
        if component is None:
            return None  # what is wrong with the component is noted already
        base, package = component, Package(component, "inside the component", closed=True)
    path = package.find(source, node, base, findings)
    return package.root(path, tag, node, findings) if path else None
