C     Loops in fixed form, one of which ends at a label: a call that is
C     planned, and results that are used in the next round.
C     FILE _work.inc
C     EXPECT kept: changed: planned once
C     EXPECT lagged: changed: waited for in the next round
C     EXPECT checked: changed: since its error code is read
      module rounds
      implicit none
      include 'mpif.h'
      contains
      include '_work.inc'

      subroutine kept(comm, answer)
      integer comm, step, ierr
      double precision answer, part(20000), total(20000)
      answer = 0
      do 10 step = 1, 4
        call fill(part, step)
        call MPI_ALLREDUCE(part, total, 20000, MPI_DOUBLE_PRECISION,    ! CALL kept
     &                     MPI_SUM, comm, ierr)
        answer = answer + work(step)
        answer = answer + total(step)                                   ! USE kept
   10 continue
      end subroutine kept

      subroutine lagged(answer)
      integer step, ierr
      double precision answer, part(20000), total(20000)
      answer = 0
      total = 0
      do 20 step = 1, 4
        answer = answer + work(step)
        answer = answer + total(step)                                   ! USE lagged
        call fill(part, step)
        call MPI_ALLREDUCE(part, total, 20000, MPI_DOUBLE_PRECISION,    ! CALL lagged
     &                     MPI_SUM, MPI_COMM_WORLD, ierr)
   20 continue
      answer = answer + total(2)
      end subroutine lagged

      subroutine checked(answer, ierr)
      integer step, ierr
      double precision answer, total(20000)
      answer = 0
      total = 0
      do step = 1, 4
        answer = answer + total(step)                                   ! USE checked
        call fill(total, step)
        call MPI_BCAST(total, 20000, MPI_DOUBLE_PRECISION, 0,           ! CALL checked
     &                 MPI_COMM_WORLD, ierr)
        answer = answer + work(step)
      end do
      end subroutine checked
      end module rounds

      program main
      use rounds
      implicit none
      double precision answers(3)
      integer rank, ierr, time
      call MPI_INIT(ierr)
      do time = 1, 8
        call kept(MPI_COMM_WORLD, answers(1))
        call lagged(answers(2))
        call checked(answers(3), ierr)
      end do
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      if (rank .eq. 0) print '(es20.12)', answers
      call MPI_FINALIZE(ierr)
      end program main
