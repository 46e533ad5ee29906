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
                         .content = {0x7777777777777777, 0x8888888888888888},
                         .lineage = {0x9999999999999999, 0xaaaaaaaaaaaaaaaa},
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

constexpr std::string_view kGoldenSegmentHeader = R"(0000  65 62 62 73 74 6f 72 65 01 00 00 00 00 00 00 00
0010  01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
0030  57 17 f0 95 ac 25 a9 91 41 e5 83 7c d7 45 7c d5
)";

constexpr std::string_view kGoldenRecord = R"(0000  65 62 62 62 6c 6f 63 6b 02 00 00 00 00 00 00 00
0010  03 00 00 00 02 00 00 00 20 00 00 00 00 00 00 00
0020  80 00 00 00 40 00 00 00 00 00 00 00 00 00 00 00
0030  11 11 11 11 11 11 11 11 22 22 22 22 22 22 22 22
0040  33 33 33 33 33 33 33 33 44 44 44 44 44 44 44 44
0050  55 55 55 55 55 55 55 55 66 66 66 66 66 66 66 66
0060  77 77 77 77 77 77 77 77 88 88 88 88 88 88 88 88
0070  99 99 99 99 99 99 99 99 aa aa aa aa aa aa aa aa
0080  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
0090  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
00a0  dd be a5 52 c1 14 fa ff 42 14 13 24 9a 6d 8a 6c
00b0  c0 d5 44 7b c7 5b c5 65 8a 4d 92 55 4c 50 17 2f
00c0  01 00 00 00 e8 03 00 00 a0 86 01 00 00 00 00 00
00d0  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
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
