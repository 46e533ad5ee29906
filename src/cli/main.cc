#include "cli/command_line.h"

int main(int argc, char** argv) { return ebb::run_command_line(argc, argv); }
