! What the Fortran programs here share with those of C (work.h).
module work
  implicit none
#ifndef STEPS
#define STEPS 100
#define N 40000
#define MS 4
#endif
  integer, parameter :: rounds = STEPS, count = N
contains
  double precision function busy(seed)
    integer, intent(in) :: seed
    integer :: i
    busy = seed
    do i = 1, MS*350000
      busy = busy*0.999999d0 + 1d-6
    end do
  end function busy

  subroutine fill(part, step)
    double precision, intent(out) :: part(count)
    integer, intent(in) :: step
    integer :: i
    do i = 1, count
      part(i) = step + mod(i, 7)
    end do
  end subroutine fill

  subroutine ended(answer)
    include 'mpif.h'
    double precision, intent(in) :: answer
    integer :: rank, ierr
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    if (rank == 0) print '(es20.12)', answer
    call MPI_Finalize(ierr)
  end subroutine ended
end module work
