# Who lies below whom: the one place that says it (docs/house.md §5).
#
#   base < {json, gguf, policy, device, matrix} < {text, store, cache, replay, budget} < {grammar, model} < {chat, session}
#        < {engine, plain} < server < bench < cli
#
# One list entry per level, lowest first; the rooms of one level are separated by commas and do not know each other.
# tools/check_house reads this file too, so that CMake and the include check cannot disagree.
set(EBB_ROOM_LEVELS
  base
  json,gguf,policy,device,matrix
  text,store,cache,replay,budget
  grammar,model
  chat,session
  engine,plain
  server
  bench
  cli
)

# find_room_level(ROOM OUT): the index of ROOM's level in the table, or -1 if it names no room.
function(find_room_level room out)
  set(index 0)
  foreach(level IN LISTS EBB_ROOM_LEVELS)
    string(REPLACE "," ";" rooms "${level}")
    if(room IN_LIST rooms)
      set(${out} ${index} PARENT_SCOPE)
      return()
    endif()
    math(EXPR index "${index} + 1")
  endforeach()
  set(${out} -1 PARENT_SCOPE)
endfunction()

# require_lower_rooms(ROOM dep...): stops unless every dep is a room on a lower level than ROOM.
function(require_lower_rooms room)
  find_room_level(${room} own_level)
  if(own_level EQUAL -1)
    message(FATAL_ERROR "room '${room}' is not in cmake/room_table.cmake; give it a level there first")
  endif()
  foreach(dep IN LISTS ARGN)
    find_room_level(${dep} dep_level)
    if(dep_level EQUAL -1)
      message(FATAL_ERROR "room '${room}' names '${dep}' in DEPS, which is not in cmake/room_table.cmake")
    endif()
    if(NOT dep_level LESS own_level)
      message(FATAL_ERROR
        "room '${room}' (level ${own_level}) may not depend on '${dep}' (level ${dep_level}): only lower rooms, "
        "never siblings (cmake/room_table.cmake, docs/house.md §5)")
    endif()
  endforeach()
endfunction()
