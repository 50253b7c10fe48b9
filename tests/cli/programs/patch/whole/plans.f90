! Calls in loops, whose arguments stay the same or do not, and results of the round before.
! FILE _work.inc
! EXPECT kept: changed: planned once
! EXPECT outermost: changed: planned once
! EXPECT element: changed: planned once
! EXPECT only_read: changed: planned once
! EXPECT counted: changed: not planned, since count may change in line
! EXPECT handed: changed: not planned, since count may change in line
! EXPECT renewed: changed: not planned, since part, which is allocatable, may move in line
! EXPECT inside: changed: not planned, since a procedure inside of its function may change count
! EXPECT of_module: changed: not planned, since shared_count is not declared
! EXPECT by_namelist: changed: not planned, since count is in a NAMELIST
! EXPECT left_early: changed: not planned, since its loop may be left before its end
! EXPECT lagged: changed: waited for in the next round
! EXPECT lagged_while: changed: waited for in the next round
! EXPECT lagged_away: changed: does not go to the next round, since its loop may be left
! EXPECT lagged_error: changed: does not go to the next round, since its error code is read
module plans
  use mpi
  implicit none
  integer, parameter :: n = 20000
  integer :: shared_count = n
contains
  include '_work.inc'

  subroutine half(count)
    integer, intent(inout) :: count
    count = max(1, count/2)
  end subroutine half

  integer function twice(count)
    integer, intent(in) :: count
    twice = 2*count
  end function twice

  subroutine kept(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: step, ierr
    answer = 0
    do step = 1, 4
      call fill(part, step)
      call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, &
        MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL kept
      answer = answer + work(step)
      answer = answer + total(step) ! USE kept
    end do
  end subroutine kept

  subroutine outermost(answer)
    double precision, intent(out) :: answer
    double precision :: total(n)
    integer :: i, j, ierr
    answer = 0
    do i = 1, 2
      do j = 1, 2
        call fill(total, i + j)
        call MPI_Allreduce(MPI_IN_PLACE, total, n/2, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr) ! CALL outermost
        answer = answer + work(j)
        answer = answer + total(j) ! USE outermost
      end do
    end do
  end subroutine outermost

  subroutine element(comm, answer)
    integer, intent(in) :: comm
    double precision, intent(out) :: answer
    double precision :: rows(n, 2)
    integer :: step, column, ierr
    answer = 0
    column = 2
    do step = 1, 4
      call fill(rows(:, 2), step)
      call MPI_Bcast(rows(1, column), n, MPI_DOUBLE_PRECISION, 0, comm, ierr) ! CALL element
      answer = answer + work(step)
      answer = answer + rows(step, 2) ! USE element
    end do
  end subroutine element

  subroutine only_read(answer)
    double precision, intent(out) :: answer
    double precision, allocatable :: part(:), total(:)
    integer :: step, count, ierr
    allocate (part(n), total(n))
    count = n/2
    call fill(part, 1)
    answer = 0
    do step = 1, 4
      part(step) = twice(count) - n + step
      call MPI_Allreduce(part, total, count, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL only_read
      answer = answer + work(step)
      if (count > 2) answer = answer + 1
      answer = answer + total(step) ! USE only_read
    end do
  end subroutine only_read

  subroutine counted(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: step, count, ierr
    answer = 0
    count = n
    do step = 1, 4
      call fill(part, step)
      call MPI_Allreduce(part, total, count, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL counted
      answer = answer + work(step)
      answer = answer + total(step) ! USE counted
      count = count - 1
    end do
  end subroutine counted

  subroutine handed(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: step, count, ierr
    answer = 0
    count = n
    do step = 1, 4
      call fill(part, step)
      call MPI_Allreduce(part, total, count, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL handed
      answer = answer + work(step)
      answer = answer + total(1) ! USE handed
      call half(count)
    end do
  end subroutine handed

  subroutine renewed(answer)
    double precision, intent(out) :: answer
    double precision, allocatable :: part(:), total(:)
    integer :: step, ierr
    allocate (total(n))
    answer = 0
    do step = 1, 4
      part = [total(1:n - 1), 1d0*step]
      call fill(part, step)
      call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL renewed
      answer = answer + work(step)
      answer = answer + total(step) ! USE renewed
    end do
  end subroutine renewed

  subroutine inside(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: step, count, ierr
    answer = 0
    count = n
    do step = 1, 4
      call fill(part, step)
      call MPI_Allreduce(part, total, count, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL inside
      answer = answer + work(step)
      answer = answer + total(1) ! USE inside
      call shorten()
    end do
  contains
    subroutine shorten()
      count = count - 1
    end subroutine shorten
  end subroutine inside

  subroutine of_module(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: step, ierr
    answer = 0
    do step = 1, 4
      call fill(part, step)
      call MPI_Allreduce(part, total, shared_count, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL of_module
      answer = answer + work(step)
      answer = answer + total(step) ! USE of_module
    end do
  end subroutine of_module

  subroutine by_namelist(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: step, count, ierr
    character(len=20) :: text
    namelist /input/ count
    answer = 0
    count = n
    text = '&input count=5000 /'
    do step = 1, 4
      call fill(part, step)
      call MPI_Allreduce(part, total, count, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL by_namelist
      answer = answer + work(step)
      answer = answer + total(step) ! USE by_namelist
      read (text, nml=input)
    end do
  end subroutine by_namelist

  subroutine left_early(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: step, ierr
    answer = 0
    do step = 1, 4
      call fill(part, step)
      call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL left_early
      answer = answer + work(step)
      answer = answer + total(step) ! USE left_early
      if (step == 3) return
    end do
  end subroutine left_early

  subroutine lagged(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: step, ierr
    answer = 0
    total = 0
    do step = 1, 4
      answer = answer + work(step)
      answer = answer + total(step) ! USE lagged
      call fill(part, step)
      call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL lagged
    end do
    answer = answer + total(1)
  end subroutine lagged

  subroutine lagged_while(answer)
    double precision, intent(out) :: answer
    double precision :: total(n)
    integer :: step, ierr
    answer = 0
    total = 0
    step = 0
    do while (step < 4)
      step = step + 1
      answer = answer + work(step)
      if (step == 2) cycle
      answer = answer + total(step) ! USE lagged_while
      call fill(total, step)
      call MPI_Bcast(total, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr) ! CALL lagged_while
      answer = 0.5*answer
    end do
    answer = answer + total(1)
  end subroutine lagged_while

  subroutine lagged_away(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: step, ierr
    answer = 0
    total = 0
    do step = 1, 4
      answer = answer + total(step) ! USE lagged_away
      call fill(part, step)
      call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL lagged_away
      answer = answer + work(step)
      if (step == 3) return
    end do
  end subroutine lagged_away

  subroutine lagged_error(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: step, ierr
    answer = 0
    total = 0
    do step = 1, 4
      answer = answer + total(step) ! USE lagged_error
      call fill(part, step)
      call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL lagged_error
      answer = answer + work(step)
    end do
    if (ierr /= MPI_SUCCESS) answer = -1
  end subroutine lagged_error
end module plans

program main
  use plans
  implicit none
  double precision :: answers(15)
  integer :: rank, time, ierr
  call MPI_Init(ierr)
  do time = 1, 6
    call kept(answers(1))
    call outermost(answers(2))
    call element(MPI_COMM_WORLD, answers(3))
    call only_read(answers(4))
    call counted(answers(5))
    call handed(answers(6))
    call renewed(answers(7))
    call inside(answers(8))
    call of_module(answers(9))
    call left_early(answers(10))
    call lagged(answers(11))
    call lagged_while(answers(12))
    call lagged_away(answers(13))
    call lagged_error(answers(14))
    call by_namelist(answers(15))
  end do
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  if (rank == 0) print '(es20.12)', answers
  call MPI_Finalize(ierr)
end program main
