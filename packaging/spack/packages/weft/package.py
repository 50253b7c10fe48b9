# Spack 1.2 (development version of 2026-01) ran its audit and its solver on this recipe, with its
# packages of 2026-07 on Debian 12. `make recipes` writes dist/spack_repo/weft from it. Install it
# by:
#
#   spack repo add dist/spack_repo/weft && spack install weft
#
# Programs built for one MPI library fit all libraries of the same ABI. The Python packages that
# Weft needs come from Python's registry.
from spack.package import (
    Executable,
    depends_on,
    license,
    on_package_attributes,
    requires,
    run_after,
    version,
)
from spack_repo.builtin.build_systems.cmake import CMakePackage, generator


class Weft(CMakePackage):
    """Weft runs the collectives of unmodified MPI programs behind their computation:
    mpiexec -n 4 weft run -- ./app"""

    url = "file://@FOLDER@/weft-@VERSION@.tar.gz"

    license("BSD-3-Clause")

    version("@VERSION@", sha256="@SHA256@")

    requires("platform=linux")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("cli11", type="build")
    depends_on("py-pip", type="build")
    depends_on("python@3.9:", type=("build", "run"))
    depends_on("hwloc@2:")
    depends_on("mpi")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("WEFT_TESTS", False),
            self.define("WEFT_MPI", self.spec["mpi"].mpicc),
        ]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def runs_a_program(self):
        Executable(self.prefix.bin.weft)("run", "--", "true")
