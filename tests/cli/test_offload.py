"""Tests what `weft info` prints about collectives by the network: what is installed, and its
consequences."""

import json

from weft.system import mpi_libraries, offload

OMPI_INFO = """mca:coll:han:version:"mca:2.1.0"
mca:coll:hcoll:version:"mca:2.1.0"
mca:coll:ucc:version:"mca:2.1.0"
mca:fcoll:vulcan:version:"mca:2.1.0"
mca:coll:han:param:coll_ucc_priority:value:"10"
"""
LDD = """\tlibucp.so.0 => /opt/ucx/lib/libucp.so.0 (0x00007f)
\tlibucc.so.1 => /opt/ucc/lib/libucc.so.1 (0x00007f)
\tlibhcoll.so.1 => not found
\tlibsharp_coll.so.5 => /opt/sharp/lib/libsharp_coll.so.5 (0x00007f)
"""


def test_components_and_libraries_are_told_from_their_listings():
    assert offload.components(OMPI_INFO) == ["hcoll", "ucc"]
    assert offload.components("mca:coll:han:version:2\n") == []
    assert offload.linked(LDD) == ["ucc", "sharp"]


def test_what_follows_is_said():
    none = offload.in_words({"mpich": [], "openmpi": []}, [], {})
    assert none.startswith("none: no MPI library with hcoll, ucc, sharp; InfiniBand devices: none")
    without_network = offload.in_words({"openmpi": ["ucc"]}, [], {})
    assert without_network.startswith("none: openmpi (ucc); InfiniBand devices: none")
    both = offload.in_words({"mpich": [], "openmpi": ["ucc"]}, ["mlx5_0"], {"UCC_TLS": "sharp"})
    assert both.startswith("openmpi (ucc); InfiniBand devices: mlx5_0; may serve")
    assert both.endswith("set: UCC_TLS=sharp")


def test_only_variables_of_offload_are_told():
    there = {"UCC_TLS": "sharp", "HCOLL_ENABLE_SHARP": "3", "PATH": "/bin", "MUCC": "1"}
    assert offload.variables(there) == {"HCOLL_ENABLE_SHARP": "3", "UCC_TLS": "sharp"}


def test_info_has_it_of_each_library_that_runs(call):
    facts = json.loads(call("info", "--json").stdout)
    assert set(facts["machine"]) >= {"infiniband", "offload_variables"}
    for mpi in facts["libraries"]:
        assert ("offload" in mpi) == ("problem" not in mpi)
    if mpi_libraries.implementation("openmpi").mpiexec.exists():
        assert "collectives by the network" in call("info").stdout
