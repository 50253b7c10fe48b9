// Declares types that mpi.h of MPI 3.1 lacks (MPICH 3.4, Open MPI 4.1). Weft's wrappers need the
// type MPI_Session to compile, although no function of these libraries takes a session.
#pragma once

#include <mpi.h>

#if MPI_VERSION < 4
#ifdef OPEN_MPI
using MPI_Session = struct ompi_instance_t*;
#else
using MPI_Session = int;
#endif
#endif
