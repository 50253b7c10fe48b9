# The MPI families found below WEFT_MPI_DIR, each as an imported header-only target weft_mpi_<family>
# (the preloaded library is never linked to an MPI library; programs that are use weft_mpi_program).
#   family   header                     the library it stands before
#   mpich    mpich/include/mpi.h        libmpi.so.12 (MPICH, Intel MPI, MVAPICH, Cray)
#   openmpi  openmpi/include/mpi.h      libmpi.so.40
#   abi      mpich/include/mpi_abi.h    libmpi_abi.so.1 (the MPI-5 standard ABI)
set(WEFT_FAMILIES "")
set(WEFT_IMPLEMENTATIONS "")

macro(weft_family family header_dir)
  list(APPEND WEFT_FAMILIES ${family})
  add_library(weft_mpi_${family} INTERFACE)
  target_include_directories(weft_mpi_${family} SYSTEM INTERFACE ${header_dir})
  string(TOUPPER ${family} upper)
  target_compile_definitions(weft_mpi_${family} INTERFACE WEFT_FAMILY_${upper}=1
                             WEFT_FAMILY="${family}" OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
endmacro()

if(EXISTS ${WEFT_MPI_DIR}/mpich/include/mpi.h)
  weft_family(mpich ${WEFT_MPI_DIR}/mpich/include)
  list(APPEND WEFT_IMPLEMENTATIONS mpich)
  # The standard ABI's header under the name that sources include.
  configure_file(${WEFT_MPI_DIR}/mpich/include/mpi_abi.h ${CMAKE_BINARY_DIR}/abi/mpi.h COPYONLY)
  weft_family(abi ${CMAKE_BINARY_DIR}/abi)
endif()
if(EXISTS ${WEFT_MPI_DIR}/openmpi/include/mpi.h)
  weft_family(openmpi ${WEFT_MPI_DIR}/openmpi/include)
  list(APPEND WEFT_IMPLEMENTATIONS openmpi)
endif()
if(EXISTS ${WEFT_MPI_DIR}/intelmpi/include/mpi.h)
  list(APPEND WEFT_IMPLEMENTATIONS intelmpi)
endif()

# An ordinary MPI program, compiled once per MPI library at hand as build/bin/<mpi>/<name>, with
# that library's own compiler wrapper; it knows nothing of Weft.
function(weft_mpi_program name)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h
       ${CMAKE_SOURCE_DIR}/tests/mpi/*.h ${CMAKE_SOURCE_DIR}/bench/*.h
       ${CMAKE_SOURCE_DIR}/include/*.h)
  foreach(mpi ${WEFT_IMPLEMENTATIONS})
    set(out ${CMAKE_BINARY_DIR}/bin/${mpi}/${name})
    set(prefix ${WEFT_MPI_DIR}/${mpi})
    list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE sources)
    add_custom_command(
      OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/bin/${mpi}
      COMMAND ${CMAKE_COMMAND} -E env I_MPI_ROOT=${prefix} ${prefix}/bin/mpicxx
              -std=c++20 -O3 -Wall -Wextra -Wno-cast-function-type -Wno-restrict
              -I${CMAKE_SOURCE_DIR}/include
              -I${CMAKE_CURRENT_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/tests/mpi ${sources} -o ${out} -Wl,-rpath,${prefix}/lib -pthread
      DEPENDS ${sources} ${headers}
      COMMENT "MPI program ${name} (${mpi})"
      VERBATIM)
    add_custom_target(${name}_${mpi} ALL DEPENDS ${out})
  endforeach()
endfunction()
