// The bytes that docs/store_format.md shows are those that are written and read: whoever changes them changes the
// version too.
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "store/record.h"
#include "store/segment.h"

namespace ebb {
namespace {

// One block of three tokens at position 128, with two frames of 16 bytes.
RecordHandle make_golden_record() {
  const std::vector<Token> tokens = {Token(1), Token(1000), Token(100000)};
  RecordBuilder builder({.key = {.model = {0x1111111111111111, 0x2222222222222222},
                                 .layout = {0x3333333333333333, 0x4444444444444444},
                                 .name = {0x5555555555555555, 0x6666666666666666}},
                         .begin = Position(128),
                         .anchor = Position(64),
                         .n_frames = 2,
                         .frame_bytes = 32},
                        tokens);
  for (std::size_t i = 0; i < 32; ++i) builder.frames()[i] = static_cast<std::byte>(i);
  return std::move(builder).seal();
}

// 16 bytes a line, as the page shows them: offset, then bytes.
std::string dump(std::span<const std::byte> bytes) {
  std::string text;
  for (std::size_t line = 0; line < bytes.size(); line += 16) {
    text += fmt::format("{:04x} ", line);
    for (const std::byte b : bytes.subspan(line, 16)) text += fmt::format(" {:02x}", std::to_integer<unsigned>(b));
    text += '\n';
  }
  return text;
}

constexpr std::string_view kGoldenSegmentHeader = R"(0000  65 62 62 73 74 6f 72 65 02 00 00 00 00 00 00 00
0010  01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
0030  dd da 30 32 68 c8 89 c1 a6 47 cc f3 4a c2 f9 c4
)";

constexpr std::string_view kGoldenRecord = R"(0000  65 62 62 62 6c 6f 63 6b 03 00 00 00 00 00 00 00
0010  01 00 00 00 03 00 00 00 02 00 00 00 00 00 00 00
0020  20 00 00 00 00 00 00 00 80 00 00 00 40 00 00 00
0030  11 11 11 11 11 11 11 11 22 22 22 22 22 22 22 22
0040  33 33 33 33 33 33 33 33 44 44 44 44 44 44 44 44
0050  55 55 55 55 55 55 55 55 66 66 66 66 66 66 66 66
0060  43 9d 08 0f a7 ab 0c 2d 01 7d 23 2b d1 50 39 4a
0070  fa 30 7b b7 ac 8d 30 d7 82 40 86 ab d0 fa 4a e9
0080  01 00 00 00 e8 03 00 00 a0 86 01 00 00 00 00 00
0090  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
00a0  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
00b0  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
00c0  e2 ca 0d 87 cc 12 28 84 e2 07 76 82 31 06 95 72
00d0  3b 2f 6a 4a 51 28 b5 71 57 b2 91 a2 04 18 62 7d
00e0  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
00f0  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
0100  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f
0110  10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f
0120  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
0130  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
)";

std::string read_page() {
  std::ifstream file(EBB_SOURCE_DIR "/docs/store_format.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(StoreFormat, the_golden_record_is_written_byte_for_byte) {
  EXPECT_EQ(dump(make_golden_record()->bytes()), kGoldenRecord);
}

TEST(StoreFormat, the_golden_segment_header_is_written_byte_for_byte) {
  EXPECT_EQ(dump(encode_segment_header(1)), kGoldenSegmentHeader);
}

TEST(StoreFormat, the_page_shows_the_golden_bytes) {
  const std::string page = read_page();
  EXPECT_NE(page.find(kGoldenRecord), std::string::npos);
  EXPECT_NE(page.find(kGoldenSegmentHeader), std::string::npos);
}

}  // namespace
}  // namespace ebb
