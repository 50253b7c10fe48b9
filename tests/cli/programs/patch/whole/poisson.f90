! A solver in a module, by mpi_f08: a norm in a function that two places call, and a sum beside which
! the solution is updated.
! EXPECT dot: left: nothing could be computed
! EXPECT beside: changed
! EXPECT in_place: changed
module solver
  use mpi_f08
  implicit none
  private
  public :: solve
  integer, parameter, public :: n = 20000
contains
  double precision function dot(a, b)
    double precision, intent(in) :: a(n), b(n)
    double precision :: own
    own = dot_product(a, b)
    call MPI_Allreduce(own, dot, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD) ! CALL dot
  end function dot ! USE dot

  subroutine apply(x, y)
    double precision, intent(in) :: x(n)
    double precision, intent(out) :: y(n)
    integer :: i
    y(1) = 4*x(1) - x(2)
    do i = 2, n - 1
      y(i) = 4*x(i) - x(i - 1) - x(i + 1)
    end do
    y(n) = 4*x(n) - x(n - 1)
  end subroutine apply

  subroutine solve(x, r, residual)
    double precision, intent(inout) :: x(n), r(n)
    double precision, intent(out) :: residual
    double precision, dimension(n) :: p, q, all
    double precision :: alpha, before, own, sums
    integer :: step
    p = r
    before = dot(r, r)
    residual = before
    do step = 1, 10
      call apply(p, q)
      alpha = before/dot(p, q)
      r = r - alpha*q
      own = dot_product(r, r)
      call MPI_Allreduce(own, sums, 1, MPI_DOUBLE_PRECISION, MPI_SUM, & ! CALL beside
                         MPI_COMM_WORLD)
      x = x + alpha*p
      q = 0.5d0*q
      residual = sums ! USE beside
      p = r + residual/before*p
      before = residual
    end do
    all = x
    call MPI_Allreduce(MPI_IN_PLACE, all, n, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD) ! CALL in_place
    call apply(x, q)
    residual = residual + sum(q)
    residual = residual + all(1) ! USE in_place
  end subroutine solve
end module solver

program main
  use mpi_f08
  use solver
  implicit none
  double precision :: x(n), r(n), residual
  integer :: rank, i, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  do i = 1, 5
    x = 0
    r = 1
    call solve(x, r, residual)
  end do
  if (rank == 0) print '(es20.12)', residual, x(3)
  call MPI_Finalize(ierr)
end program main
