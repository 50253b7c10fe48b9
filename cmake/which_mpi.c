/* Which MPI library a compiler wrapper belongs to, and whether it is recent enough: preprocessed by
   cmake/mpi.cmake, never compiled. The line says "weft: NAME fits" or "weft: NAME old". */
/* clang-format off */
#include <mpi.h>

#if defined(I_MPI_VERSION)
weft: intelmpi fits
#elif defined(OPEN_MPI)
#if OMPI_MAJOR_VERSION > 4 || (OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION >= 1)
weft: openmpi fits
#else
weft: openmpi old
#endif
#elif defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 30400000
weft: mpich fits
#else
weft: unknown old
#endif
