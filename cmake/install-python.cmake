# The Python package and its dependencies in P/lib/weft/python, and P/bin/weft-python, a script that
# starts it from wherever P lies. Why in a folder of its own: no other Python program of the machine
# sees these packages, and Weft sees no other versions of them.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME python)
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
file(READ pyproject.toml project_file)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS pyproject.toml)
string(REGEX MATCH "\ndependencies = \\[[^]]*\\]" dependencies "${project_file}")
string(REGEX MATCHALL "\"[^\"]+\"" dependencies "${dependencies}")
list(TRANSFORM dependencies REPLACE "\"" "")

# Compiled packages fit one version of Python only.
set(WEFT_PYTHON_OF_DEPENDENCIES "")
if(WEFT_PYTHON_DEPENDENCIES)
  set(WEFT_PYTHON_OF_DEPENDENCIES ${Python3_VERSION_MAJOR}.${Python3_VERSION_MINOR})
endif()
list(JOIN dependencies "' '" quoted)
set(WEFT_DEPENDENCIES "'${quoted}'")
configure_file(cmake/weft-python.in ${CMAKE_BINARY_DIR}/weft-python @ONLY)
configure_file(cmake/python-main.py.in ${CMAKE_BINARY_DIR}/python-main.py @ONLY)

install(PROGRAMS ${CMAKE_BINARY_DIR}/weft-python DESTINATION bin)
install(DIRECTORY python/weft DESTINATION lib/weft/python PATTERN __pycache__ EXCLUDE)
install(FILES ${CMAKE_BINARY_DIR}/python-main.py DESTINATION lib/weft/python RENAME __main__.py)
set(place "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/weft/python")
if(WEFT_PYTHON_DEPENDENCIES)
  install(CODE "execute_process(COMMAND \"${Python3_EXECUTABLE}\" -m pip install --quiet
      --disable-pip-version-check --no-compile --upgrade --target \"${place}\" ${dependencies}
      RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR \"Weft's Python dependencies could not be installed; without the network,\"
        \" configure with -DWEFT_PYTHON_DEPENDENCIES=OFF\")
    endif()
    file(REMOVE_RECURSE \"${place}/bin\")  # commands of those packages, which nobody asked for
    ")
endif()
install(CODE "execute_process(
  COMMAND \"${Python3_EXECUTABLE}\" -m compileall -q -s \"\$ENV{DESTDIR}\" \"${place}\")")
if(NOT WEFT_PYTHON_DEPENDENCIES)
  install(CODE "message(STATUS \"Weft's Python commands need packages; install them with: \"
    \"python3 -m pip install --target \${CMAKE_INSTALL_PREFIX}/lib/weft/python ${WEFT_DEPENDENCIES}\")")
endif()
