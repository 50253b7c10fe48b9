# The MPI libraries that Weft is built for, and their families. Each family is an imported header-only
# target weft_mpi_<family> (the preloaded library is never linked to an MPI library; programs that
# are use weft_mpi_program).
#   family   header      the library it stands before
#   mpich    mpi.h       libmpi.so.12 (MPICH, Intel MPI, MVAPICH, Cray)
#   openmpi  mpi.h       libmpi.so.40
#   abi      mpi_abi.h   libmpi_abi.so.1 (the MPI-5 standard ABI), where MPICH has it
# They are those below WEFT_MPI_DIR, or those of the compiler wrappers in WEFT_MPI.
set(WEFT_MPI "" CACHE STRING "compiler wrappers (/path/to/mpicc;...) of MPI libraries to build for")
set(WEFT_FAMILIES "")
set(WEFT_IMPLEMENTATIONS "")

# Ends the configuration with one sentence, which the Makefile shows alone.
function(weft_give_up)
  string(CONCAT sentence ${ARGN})
  message(NOTICE "weft: ${sentence}")
  message(FATAL_ERROR "Weft cannot be built here.")
endfunction()

macro(weft_family family header_dir)
  list(APPEND WEFT_FAMILIES ${family})
  add_library(weft_mpi_${family} INTERFACE)
  target_include_directories(weft_mpi_${family} SYSTEM INTERFACE ${header_dir})
  string(TOUPPER ${family} upper)
  target_compile_definitions(weft_mpi_${family} INTERFACE WEFT_FAMILY_${upper}=1
                             WEFT_FAMILY="${family}" OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
endmacro()

# An MPI library: its name, the directory of its headers, and how its programs are compiled.
macro(weft_implementation name header_dir)
  if(${name} IN_LIST WEFT_IMPLEMENTATIONS)
    weft_give_up("${name} is named twice in MPI=: name one of the two.")
  endif()
  list(APPEND WEFT_IMPLEMENTATIONS ${name})
  set(WEFT_COMPILE_${name} ${ARGN})
  set(family mpich)
  if(${name} STREQUAL openmpi)
    set(family openmpi)
  endif()
  if(NOT family IN_LIST WEFT_FAMILIES)
    weft_family(${family} ${header_dir})
  endif()
  if(EXISTS ${header_dir}/mpi_abi.h AND NOT abi IN_LIST WEFT_FAMILIES)
    # The standard ABI's header under the name that sources include.
    configure_file(${header_dir}/mpi_abi.h ${CMAKE_BINARY_DIR}/abi/mpi.h COPYONLY)
    weft_family(abi ${CMAKE_BINARY_DIR}/abi)
  endif()
endmacro()

# One below WEFT_MPI_DIR.
macro(weft_embedded name)
  set(prefix ${WEFT_MPI_DIR}/${name})
  if(EXISTS ${prefix}/pyvenv.cfg AND NOT EXISTS ${prefix}/.installed)
    # Its set-up was interrupted; `make mpis` goes on with it.
  elseif(EXISTS ${prefix}/include/mpi.h)
    weft_implementation(${name} ${prefix}/include
      ${CMAKE_COMMAND} -E env I_MPI_ROOT=${prefix} ${prefix}/bin/mpicxx -Wl,-rpath,${prefix}/lib)
  elseif(EXISTS ${prefix})
    weft_give_up("${prefix} has no include/mpi.h: remove that folder and run make again.")
  endif()
endmacro()

# One that is known by its C compiler's wrapper.
function(weft_ask wrapper)
  find_program(found NAMES ${wrapper} NO_CACHE)
  if(NOT found)
    weft_give_up("There is no ${wrapper}: give MPI= the path of an MPI library's mpicc.")
  endif()
  set(question ${CMAKE_SOURCE_DIR}/cmake/which_mpi.c)
  execute_process(COMMAND ${found} -E ${question} OUTPUT_VARIABLE answer ERROR_VARIABLE error
                  RESULT_VARIABLE status)
  string(REGEX MATCH "\"([^\"]*)/mpi\\.h\"" header "${answer}")
  set(header_dir ${CMAKE_MATCH_1})
  if(NOT status EQUAL 0 OR NOT header)
    weft_give_up("${found} finds no mpi.h: install that MPI library's development files"
                        " (Debian: libmpich-dev, libopenmpi-dev).")
  endif()
  string(REGEX MATCH "weft: ([a-z]+) ([a-z]+)" line "${answer}")
  set(name "${CMAKE_MATCH_1}")
  if(NOT CMAKE_MATCH_2 STREQUAL fits)
    weft_give_up("${header_dir}/mpi.h is of no MPI library that Weft fits: it needs MPICH 3.4,"
                        " Open MPI 4.1, Intel MPI 2021 or a later one.")
  endif()
  # Its flags, without the C compiler in front: our programs are C++.
  execute_process(COMMAND ${found} -show OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  list(FILTER flags INCLUDE REGEX "^-[ILlW]")
  set(searched ${flags})
  list(FILTER searched INCLUDE REGEX "^-L")
  list(TRANSFORM searched REPLACE "^-L" "-Wl,-rpath,")
  set(includes ${flags})
  list(FILTER includes INCLUDE REGEX "^-I")
  list(FILTER flags EXCLUDE REGEX "^-I")
  set(header_dir ${header_dir} PARENT_SCOPE)
  set(name ${name} PARENT_SCOPE)
  set(includes -I${header_dir} ${includes} PARENT_SCOPE)
  set(flags ${flags} ${searched} PARENT_SCOPE)
endfunction()

if(WEFT_MPI)
  foreach(wrapper ${WEFT_MPI})
    weft_ask(${wrapper})
    # Without the C++ bindings, which mpicc does not link.
    weft_implementation(${name} ${header_dir}
      ${CMAKE_CXX_COMPILER} -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX ${includes})
    set(WEFT_LINK_${name} ${flags})
  endforeach()
else()
  foreach(name mpich openmpi intelmpi)
    weft_embedded(${name})
  endforeach()
endif()
if(NOT WEFT_IMPLEMENTATIONS AND NOT WEFT_SANITIZE)
  weft_give_up("There is no MPI library below ${WEFT_MPI_DIR}: run make build, or name the"
                      " library's compiler wrapper: make build MPI=/path/to/mpicc.")
endif()

# An object of ordinary MPI programs, which know nothing of Weft: compiled with that library's own
# flags, once for all programs that are made of it. It is a target of its own, so that no two of them
# compile it at the same time. Programs of Intel MPI take MPICH's objects where both lie below
# WEFT_MPI_DIR: the two have one ABI, which installed programs rely on, too.
function(weft_mpi_object mpi source flags result)
  if(mpi STREQUAL intelmpi AND mpich IN_LIST WEFT_IMPLEMENTATIONS AND NOT WEFT_MPI)
    set(mpi mpich)
  endif()
  get_filename_component(name ${source} NAME_WE)
  string(MD5 key "${source} ${flags}")
  string(SUBSTRING ${key} 0 6 key)
  set(target ${name}-${key}_${mpi})
  set(object ${CMAKE_BINARY_DIR}/programs/${mpi}/${name}-${key}.o)
  set(${result} ${target} ${object} PARENT_SCOPE)
  if(TARGET ${target})
    return()
  endif()
  # Programs that test need not be fast.
  set(level -O3)
  if(source MATCHES "^${CMAKE_SOURCE_DIR}/tests/")
    set(level -O1)
  endif()
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${WEFT_COMPILE_${mpi}} -c
            -std=c++20 ${level} -Wall -Wextra -Wno-cast-function-type -Wno-restrict
            -I${CMAKE_SOURCE_DIR}/include -I${CMAKE_SOURCE_DIR}/tests/mpi
            ${flags} ${source} -o ${object} -pthread -MD -MT ${object} -MF ${object}.d
    DEPENDS ${source}
    DEPFILE ${object}.d
    COMMENT "MPI object ${name} (${mpi})"
    VERBATIM)
  add_custom_target(${target} DEPENDS ${object})
endfunction()

# An ordinary MPI program, made once per MPI library at hand as build/bin/<mpi>/<name>. Bound lazily,
# so that it starts under an older library of the family, too, which lacks a call that only some of
# its modes make.
#   weft_mpi_program(name source... [FLAGS flag...] [LIBRARIES library...] [GPU])
# GPU: linked with the library for collectives in streams.
function(weft_mpi_program name)
  cmake_parse_arguments(PARSE_ARGV 1 own "GPU" "" "FLAGS;LIBRARIES")
  foreach(mpi ${WEFT_IMPLEMENTATIONS})
    set(out ${CMAKE_BINARY_DIR}/bin/${mpi}/${name})
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/bin/${mpi} ${CMAKE_BINARY_DIR}/programs/${mpi})
    set(gpu "")
    if(own_GPU)
      set(family mpich)
      if(mpi STREQUAL openmpi)
        set(family openmpi)
      endif()
      set(directory ${CMAKE_BINARY_DIR}/lib)
      set(gpu ${directory}/libweft-gpu-${family}.so -Wl,-rpath,${directory})
    endif()
    set(objects "")
    set(targets "")
    foreach(source ${own_UNPARSED_ARGUMENTS})
      get_filename_component(source ${source} ABSOLUTE)
      weft_mpi_object(${mpi} ${source} "${own_FLAGS}" made)
      list(POP_FRONT made target object)
      list(APPEND objects ${object})
      list(APPEND targets ${target})
    endforeach()
    add_custom_command(
      OUTPUT ${out}
      COMMAND ${WEFT_COMPILE_${mpi}} ${own_FLAGS} ${objects} -o ${out}
              ${gpu} ${WEFT_LINK_${mpi}} ${own_LIBRARIES} -pthread -Wl,-z,lazy
      DEPENDS ${objects} $<$<BOOL:${own_GPU}>:weft_gpu_${family}>
      COMMENT "MPI program ${name} (${mpi})"
      VERBATIM)
    add_custom_target(${name}_${mpi} ALL DEPENDS ${out})
    add_dependencies(${name}_${mpi} ${targets})
  endforeach()
endfunction()

# What `weft demo` needs with the first of these MPI libraries, and nothing else.
function(weft_demo_target)
  list(GET WEFT_IMPLEMENTATIONS 0 mpi)
  list(GET WEFT_FAMILIES 0 family)
  add_custom_target(weft-demo)
  add_dependencies(weft-demo weft weft_interpose_${family} overlap_${mpi} weft-probe_${mpi})
endfunction()
