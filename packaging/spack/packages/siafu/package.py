# SPDX-License-Identifier: BSD-3-Clause

import os

from spack.package import *


class Siafu(Package):
    """Training of graph neural networks on whole graphs, with MPI.

    The source is siafu-VERSION.tar.gz in the current folder, which "make dist"
    makes, or with "spack dev-build" the current folder."""

    manual_download = True
    url = f"file://{os.getcwd()}/siafu-0.1.0.tar.gz"

    license("BSD-3-Clause")

    version("0.1.0")

    variant("mpi", default=True, description="Ranks in several processes")

    depends_on("c", type="build", when="+mpi")
    depends_on("gmake", type="build")
    depends_on("go@1.26:", type="build")
    depends_on("mpi", when="+mpi")

    def install(self, spec, prefix):
        # Without MPICC, make would use any mpicc on the PATH.
        mpicc = spec["mpi"].mpicc if spec.satisfies("+mpi") else "no-mpicc"
        make("install", f"PREFIX={prefix}", f"MPICC={mpicc}", parallel=False)
        siafu = Executable(prefix.bin.siafu)
        mkdirp(prefix.share.man.man1)
        with open(join_path(prefix.share.man.man1, "siafu.1"), "w") as page:
            siafu("man", output=page)

    def test_version(self):
        """the installed program prints its version"""
        out = which(self.prefix.bin.siafu)("version", output=str.split, error=str.split)
        assert f"siafu {self.spec.version}" in out
