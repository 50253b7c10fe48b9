! One source for the three interfaces: INTERFACE_MPIF_H, INTERFACE_MPI, INTERFACE_MPI_F08; and what a
! program has compared.
#if defined(INTERFACE_MPI_F08)
#define COMM type(MPI_Comm)
#define WINDOW type(MPI_Win)
#define REQUEST type(MPI_Request)
#define DATATYPE type(MPI_Datatype)
#define OP type(MPI_Op)
#define STATUS type(MPI_Status)
#define ONE_STATUS
#define STATUSES(n) (n)
#define USE_MPI use mpi_f08
#define INCLUDE_MPI
#else
#define COMM integer
#define WINDOW integer
#define REQUEST integer
#define DATATYPE integer
#define OP integer
#define STATUS integer
#define ONE_STATUS (MPI_STATUS_SIZE)
#define STATUSES(n) (MPI_STATUS_SIZE, n)
#if defined(INTERFACE_MPI)
#define USE_MPI use mpi
#define INCLUDE_MPI
#else
#define USE_MPI
#define INCLUDE_MPI include 'mpif.h'
#endif
#endif

module checks
  implicit none
  integer :: cases = 0, differing = 0
contains
  subroutine check(what, equal)
    character(*), intent(in) :: what
    logical, intent(in) :: equal
    cases = cases + 1
    if (equal) return
    differing = differing + 1
    print '(2a)', 'differs: ', what
  end subroutine
end module
