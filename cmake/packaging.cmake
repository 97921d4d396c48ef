# `cmake --install` and a Debian package: the program, the bundled model where the program looks for it, licence and docs.
include(GNUInstallDirs)

install(TARGETS lily RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(EXISTS "${CMAKE_SOURCE_DIR}/models/tiny/config.json")
  install(DIRECTORY "${CMAKE_SOURCE_DIR}/models/tiny" DESTINATION "${CMAKE_INSTALL_DATADIR}/lily/models")
else()
  message(WARNING "models/tiny is absent: what gets installed has no bundled model")
endif()
install(FILES "${CMAKE_SOURCE_DIR}/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES "${CMAKE_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME copyright)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The Lily developers <lily@lily.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "local inference engine for Qwen3.6-35B-A3B")
set(CPACK_PACKAGE_DESCRIPTION "Chats with a language model on this machine, from the published 4-bit checkpoint as it is.\n\
A small model is bundled; `lily pull` fetches the real one.")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS ca-certificates)  # `lily pull` talks HTTPS
include(CPack)
