"""Tests of tools/check_house: each rule on a small tree that breaks it, and one that keeps them all."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
LOADER = importlib.machinery.SourceFileLoader("check_house", str(HERE / "check_house"))
check_house = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_house", LOADER))
LOADER.exec_module(check_house)

TABLE = (HERE.parent / "cmake" / "room_table.cmake").read_text()
ROOMS = """
add_room(base)
add_room(text DEPS base)
add_room(policy DEPS base LIBS some::library)
add_room(cache DEPS base)
add_room(model DEPS base
               cache LIBS some::library)
add_room(engine DEPS base cache model)
add_room(server DEPS base engine)
"""
# A file per room that includes what its room names, so that a tree may leave it out.
NAMED = {
    f"src/{room}/named.cc": "".join(f'#include "{dep}/a.h"\n' for dep in sorted(deps))
    for room, deps in check_house.read_deps(ROOMS).items()
}


class CheckHouseTest(unittest.TestCase):
    def check(self, files, headers=False):
        """Runs all rules on a tree of {path: text}; returns (exit status, output)."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in {"cmake/room_table.cmake": TABLE, "CMakeLists.txt": ROOMS, **NAMED, **files}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                status = check_house.main(["--root", folder] + ([] if headers else ["--no-headers"]))
            return status, output.getvalue()

    def assert_refused(self, files, *expected, headers=False):
        status, output = self.check(files, headers)
        self.assertEqual(status, 1, output)
        for text in expected:
            self.assertIn(text, output)

    def assert_accepted(self, files, headers=False):
        status, output = self.check(files, headers)
        self.assertEqual(status, 0, output)

    def test_lower_rooms_may_be_included(self):
        self.assert_accepted(
            {
                "src/base/ids.h": "#pragma once\n#include <cstdint>\n",
                "src/model/attention.h": '#pragma once\n#include <ggml.h>\n#include "base/ids.h"\n#include "cache/pool.h"\n',
                "src/engine/engine.cc": '#include "ebb/engine.h"\n#include "model/attention.h"\n',
                "include/ebb/engine.h": '#include <string>\n#include "ebb/options.h"\n',
                "tests/oracle_test.cc": '#include <gtest/gtest.h>\n#include <llama.h>\nTEST(Oracle, Agrees) {}\n',
            }
        )

    def test_a_higher_room_is_refused_with_its_line(self):
        self.assert_refused({"src/base/a.h": '#pragma once\n#include "model/b.h"\n'}, "src/base/a.h:2:", "above base")

    def test_a_sibling_is_refused(self):
        self.assert_refused({"src/policy/a.h": '#include "json/b.h"\n'}, "sibling")

    def test_a_lower_room_that_is_not_named_is_refused(self):
        self.assert_refused({"src/model/a.h": '#pragma once\n#include "policy/b.h"\n'}, "DEPS of add_room(model)")

    def test_a_room_that_is_named_and_not_included_is_refused(self):
        self.assert_refused({"src/engine/named.cc": '#include "base/a.h"\n#include "model/a.h"\n'}, "add_room(engine) names cache")

    def test_an_include_without_its_room_is_refused(self):
        self.assert_refused({"src/cache/a.cc": '#include "pool.h"\n'}, '"cache/pool.h"')

    def test_public_headers_show_no_room_and_low_rooms_see_no_public_header(self):
        self.assert_refused({"include/ebb/engine.h": '#include "model/a.h"\n'}, "public headers")
        self.assert_refused({"src/cache/a.h": '#include "ebb/engine.h"\n'}, "below the public API")

    def test_libraries_stay_in_their_rooms(self):
        self.assert_refused({"src/policy/a.h": "#include <ggml-backend.h>\n"}, "ggml-backend.h", "policy")
        self.assert_refused({"src/cache/a.cc": '#include "llama.h"\n'}, "llama.h")
        self.assert_refused({"src/cache/a.cc": "#include <gtest/gtest.h>\n"}, "x_test.cc")
        self.assert_refused({"src/engine/a.cc": "#include <nlohmann/json.hpp>\n"}, "JSON")

    def test_what_serves_tests_is_included_by_tests(self):
        files = {"src/base/toy_file.h": "#pragma once\n", "src/base/fault_disk.h": "#pragma once\n"}
        for name in files:
            include = f'#include "{name.removeprefix("src/")}"\n'
            self.assert_refused({**files, "src/cache/a.h": "#pragma once\n" + include}, "src/cache/a.h:2:", "serves tests")
            self.assert_accepted({**files, "src/cache/toy_cache.h": "#pragma once\n" + include})
            self.assert_accepted({**files, "src/cache/a_test.cc": include + "TEST(A, Works) {}\n"})

    def test_boost_stays_in_one_translation_unit(self):
        self.assert_refused({"src/server/routes.cc": "#include <boost/asio/post.hpp>\n"}, "src/server/routes.cc:1:")
        self.assert_accepted({"src/server/http.cc": "#include <boost/asio/post.hpp>\n"})

    def test_kernel_files_include_only_what_is_safe(self):
        self.assert_refused({"src/model/dot_avx2.cc": "#include <immintrin.h>\n#include <vector>\n"}, "<vector>")
        self.assert_accepted({"src/model/dot_avx2.cc": "#include <immintrin.h>\n#include <cstdint>\n"})

    def test_long_files_are_warned_of_and_then_refused(self):
        self.assert_accepted({"src/base/a.cc": "//\n" * 401})
        self.assert_refused({"src/base/a.cc": "//\n" * 451}, "451 lines")

    def test_empty_names_and_left_over_words_are_refused(self):
        self.assert_refused({"src/base/string_utils.h": "\n"}, "'utils'")
        self.assert_refused({"src/base/a.h": "\n// TODO: later\n"}, "src/base/a.h:2:")

    def test_a_test_that_no_room_builds_is_refused(self):
        self.assert_refused({"src/session/a_test.cc": "TEST(A, B) {}\n"}, "no add_room(session)")
        self.assert_refused({"src/base/a_test.cc": "\n"}, "without a TEST")

    def test_a_folder_that_is_no_room_is_refused(self):
        self.assert_refused({"src/misc_things/a.h": "\n"}, "is no room")

    def test_a_header_that_needs_another_is_refused(self):
        self.assert_refused({"src/base/a.h": "#pragma once\ninline std::string a;\n"}, "src/base/a.h:2:", headers=True)
        self.assert_accepted({"src/base/a.h": "#pragma once\n#include <string>\ninline std::string a;\n"}, headers=True)


if __name__ == "__main__":
    unittest.main()
