"""Model descriptions written by hand, piece by piece."""

from hocket.simulators.fmu import description

HEADS = {
    1: '<fmiModelDescription fmiVersion="1.0" modelName="m" modelIdentifier="m" guid="g" '
    'numberOfContinuousStates="0" numberOfEventIndicators="0">',
    2: '<fmiModelDescription fmiVersion="2.0" modelName="m" guid="g">',
    3: '<fmiModelDescription fmiVersion="3.0" modelName="m" instantiationToken="g">',
}
CS = '<CoSimulation modelIdentifier="m"/>'
TIME = '<Float64 name="time" valueReference="99" causality="independent"/>'


def folder(tmp_path, xml):
    """A folder as an unpacked FMU, with this description."""
    place = tmp_path / "unpacked"
    place.mkdir(exist_ok=True)
    (place / "modelDescription.xml").write_text(xml)
    description._read.clear()
    return place


def written(version, variables="", structure="", interface=CS, more=""):
    body = f"{interface}{more}<ModelVariables>{variables}</ModelVariables>"
    body += f"<ModelStructure>{structure}</ModelStructure>" if version > 1 else ""
    return HEADS[version] + body + "</fmiModelDescription>"


def scalar(name, reference=0, value='<Real start="1"/>', **attributes):
    listed = "".join(f' {key}="{text}"' for key, text in attributes.items())
    return f'<ScalarVariable name="{name}" valueReference="{reference}"{listed}>{value}</ScalarVariable>'
