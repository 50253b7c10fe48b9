! Procedures with a collective each. "CALL name" marks its line, "USE name" the first use measured.
module work
  implicit none
  integer, parameter :: n = 64
contains
  double precision function busy(count)
    integer, intent(in) :: count
    integer :: i
    busy = 1
    do i = 1, count
      busy = 0.5d0*busy + 1/(busy + i)
    end do
  end function busy
end module work

module cases
  use work
  implicit none
  include 'mpif.h'
contains
  subroutine plain(answer)
    double precision, intent(out) :: answer
    double precision, allocatable :: part(:), total(:)
    integer :: i, ierr
    allocate (part(n), total(n))
    part = 1
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, &  ! CALL plain
      MPI_SUM, MPI_COMM_WORLD, ierr)
    answer = busy(20)
    do i = 1, n
      answer = answer + part(i)*2
    end do
    answer = answer + total(3)  ! USE plain
  end subroutine plain

  subroutine section(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: ierr
    part = 1
    total = 2
    call MPI_Allreduce(part(1:n/2), total, n/2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)  ! CALL section
    answer = busy(20)
    answer = answer + total(3)  ! USE section
  end subroutine section

  subroutine shape(total, answer)
    double precision, intent(inout) :: total(:)
    double precision, intent(out) :: answer
    integer :: ierr
    call MPI_Bcast(total, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)  ! CALL shape
    answer = busy(20)
    answer = answer + total(3)  ! USE shape
  end subroutine shape

  subroutine checked(answer)
    double precision, intent(out) :: answer
    double precision :: total(n)
    integer :: ierr
    total = 4
    call mpi_bcast(total, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)  ! CALL checked
    if (ierr /= 0) stop 1
    answer = busy(20)
    answer = answer + total(3)  ! USE checked
  end subroutine checked

  subroutine looped(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: step, ierr
    answer = 0
    do step = 1, 3
      part = step
      call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)  ! CALL looped
      answer = answer + busy(20)
      if (step == 4) exit
      answer = answer + total(3)  ! USE looped
    end do
  end subroutine looped

  subroutine pointed(answer)
    double precision, intent(out) :: answer
    double precision, allocatable, target :: part(:), total(:)
    double precision, pointer :: other(:)
    integer :: ierr
    allocate (part(n), total(n))
    part = 1
    other => total
    call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)  ! CALL pointed
    answer = other(2) + busy(20)
    answer = answer + total(3)  ! USE pointed
  end subroutine pointed

  subroutine alone(yes, answer)
    logical, intent(in) :: yes
    double precision, intent(out) :: answer
    double precision :: total(n)
    integer :: ierr
    total = 5
    if (yes) call MPI_Bcast(total, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)  ! CALL alone
    answer = busy(20)
    answer = answer + total(3)  ! USE alone
  end subroutine alone
end module cases

program main
  use cases
  implicit none
  double precision :: answers(7), one(n)
  integer :: rank, ierr, time
  call MPI_Init(ierr)
  one = 6
  do time = 1, 20
    call plain(answers(1))
    call section(answers(2))
    call shape(one, answers(3))
    call checked(answers(4))
    call looped(answers(5))
    call pointed(answers(6))
    call alone(.true., answers(7))
  end do
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  if (rank == 0) print '(es20.12)', answers
  call MPI_Finalize(ierr)
end program main
