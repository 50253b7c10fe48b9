! Loops and procedures that are left early: cycle and exit of inner and outer loops, return, and a
! read that jumps at the end of its file.
! EXPECT inner: changed
! EXPECT outer: left: may leave this place
! EXPECT returned: left: may leave this place
! EXPECT read: left: may leave this place
! EXPECT condition: changed
module jumps
  use mpi
  implicit none
  integer, parameter :: n = 20000
contains
  double precision function work(seed)
    integer, intent(in) :: seed
    integer :: i
    work = seed
    do i = 1, n
      work = 0.5d0*work + mod(i, 3)
    end do
  end function work

  subroutine inner(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: i, step, ierr
    answer = 0
    do step = 1, 3
      part = step
      call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL inner
      do i = 1, n
        if (mod(i, 2) == 0) cycle
        if (i > n/2) exit
        answer = 0.5d0*answer + i
      end do
      answer = answer + total(step) ! USE inner
    end do
  end subroutine inner

  subroutine outer(answer)
    double precision, intent(out) :: answer
    double precision :: part(n), total(n)
    integer :: i, step, ierr
    answer = 0
    steps: do step = 1, 3
      part = step
      call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL outer
      do i = 1, n
        if (i > 100 .and. step == 2) cycle steps
      end do
      answer = answer + work(step)
      answer = answer + total(step) ! USE outer
    end do steps
  end subroutine outer

  subroutine returned(give_up, answer)
    logical, intent(in) :: give_up
    double precision, intent(out) :: answer
    double precision :: total(n)
    integer :: ierr
    total = 4
    answer = 0
    call MPI_Bcast(total, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr) ! CALL returned
    if (give_up) return
    answer = work(4)
    answer = answer + total(5) ! USE returned
  end subroutine returned

  subroutine read_one(answer)
    double precision, intent(out) :: answer
    double precision :: total(n)
    character(len=4) :: text = "1"
    integer :: number, other, ierr
    total = 5
    answer = 0
    call MPI_Bcast(total, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr) ! CALL read
    read (text, *, end=10) number, other
    answer = work(number)
    answer = answer + total(6) ! USE read
    return
10  answer = total(7)
  end subroutine read_one

  subroutine condition(answer)
    double precision, intent(out) :: answer
    double precision :: own, all
    integer :: ierr, rounds
    all = 64
    answer = 0
    rounds = 0
    do while (all > 1 .and. rounds < 100) ! USE condition
      own = all/4
      call MPI_Allreduce(own, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL condition
      answer = answer + work(rounds)
      rounds = rounds + 1
    end do
  end subroutine condition
end module jumps

program main
  use mpi
  use jumps
  implicit none
  double precision :: answers(5)
  integer :: rank, ierr, step
  call MPI_Init(ierr)
  do step = 1, 10
    call inner(answers(1))
    call outer(answers(2))
    call returned(step == 3, answers(3))
    call read_one(answers(4))
    call condition(answers(5))
  end do
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  if (rank == 0) print '(es20.12)', answers
  call MPI_Finalize(ierr)
end program main
