install(TARGETS lily)
