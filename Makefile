# Names the scripts, for habit's sake. The build is CMake's: see CMakePresets.json and script/.
.PHONY: all demo test check bench fmt deps clean

all:
	script/deps
	cmake --preset release
	cmake --build --preset release

demo test check bench fmt deps:
	script/$@

clean:
	rm -rf build
