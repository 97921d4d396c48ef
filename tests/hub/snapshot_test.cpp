// The Hub's file list and its checksums, against values made elsewhere.
#include "hub/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/words.h"

namespace lily::hub {
namespace {

using ::testing::HasSubstr;

std::string hex_of(Digest::Kind kind, const std::string& content) {
  Hasher hasher(kind, static_cast<int64_t>(content.size()));
  // In pieces, as from a network.
  for (size_t i = 0; i < content.size(); i += 3) {
    hasher.update(std::as_bytes(std::span(content)).subspan(i, std::min<size_t>(3, content.size() - i)));
  }
  return hasher.finish().hex;
}

TEST(Digest, KnownValues) {
  EXPECT_EQ(hex_of(Digest::Kind::sha256, "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_of(Digest::Kind::sha256, ""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  // printf 'hello\n' | git hash-object --stdin
  EXPECT_EQ(hex_of(Digest::Kind::git_blob, "hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(Repository, Parsed) {
  const Result<Repository> plain = parse_repository("mlx-community/Qwen3.6-35B-A3B-4bit");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->id(), "mlx-community/Qwen3.6-35B-A3B-4bit");
  EXPECT_EQ(plain->revision, "main");
  const Result<Repository> page = parse_repository("https://huggingface.co/org/name/@refs/pr/1");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->id(), "org/name");
  EXPECT_EQ(page->revision, "refs/pr/1");
  for (const char* wrong :
       {"", "/", "a", "a/", "/b", "a/b/c", "a/b@", "a/b@c/../d", "a b/c", "../a", "a/..", "a/b?c", "a/b@c@d"}) {
    EXPECT_FALSE(parse_repository(wrong)) << wrong;
  }
}

// The form of the Hub's answer, shortened.
constexpr const char* listing = R"({
  "_id": "6800", "id": "org/model", "sha": "0123456789abcdef0123456789abcdef01234567", "private": false,
  "siblings": [
    {"rfilename": ".gitattributes", "size": 1570, "blobId": "52373fe24473b1aa44333d318f578ae6bf04b49b"},
    {"rfilename": "config.json", "size": 6, "blobId": "ce013625030ba8dba906f756967f9e9ca394464a"},
    {"rfilename": "model.safetensors", "size": 5367781234, "blobId": "a6344aac8c09253b3b630fb776ae94478aa0275b",
     "lfs": {"sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "size": 5367781234, "pointerSize": 135}}
  ]})";

TEST(Snapshot, Parsed) {
  const Result<Snapshot> snapshot = parse_snapshot("org/model", listing);
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  EXPECT_EQ(snapshot->commit, "0123456789abcdef0123456789abcdef01234567");
  EXPECT_EQ(snapshot->bytes(), 5367781240);
  ASSERT_EQ(snapshot->files.size(), 2U);
  EXPECT_EQ(snapshot->find("config.json")->digest.kind, Digest::Kind::git_blob);
  EXPECT_EQ(snapshot->find("model.safetensors")->digest.kind, Digest::Kind::sha256);
  EXPECT_EQ(snapshot->find(".gitattributes"), nullptr);
}

TEST(Snapshot, CutAnywhereIsAnError) {
  const std::string text = listing;
  for (size_t size = 0; size + 1 < text.size(); ++size) {
    EXPECT_FALSE(parse_snapshot("org/model", text.substr(0, size))) << size;
  }
}

TEST(Snapshot, GgufRepositoryIsNamedAsSuch) {
  const Result<Snapshot> snapshot = parse_snapshot(
      "org/model", R"({"sha": "0123456789abcdef0123456789abcdef01234567", "siblings": [{"rfilename": "m.gguf"}]})");
  ASSERT_FALSE(snapshot);
  EXPECT_THAT(snapshot.error().message(), HasSubstr("no *.safetensors"));
}

TEST(Words, SizesAndForeignText) {
  EXPECT_EQ(readable_bytes(20'401'929'952), "20.40 GB");
  EXPECT_EQ(readable_bytes(999), "999 bytes");
  EXPECT_EQ(printable("a\033[2J\r\nb\x80"), "a?[2J??b?");
  EXPECT_EQ(printable(std::string(1000, 'x')).size(), 200U);
}

}  // namespace
}  // namespace lily::hub
