// lily chat
#include "cli/chat.h"

#include <termios.h>
#include <unistd.h>

#include <functional>
#include <iostream>
#include <memory>
#include <utility>

#include "base/paths.h"
#include "cli/chat_session.h"
#include "cli/chat_view.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"

namespace lily::cli {
namespace {

constexpr int interrupted_code = 130;  // as a shell reports a program ended by Ctrl-C

// Keys typed while no line is read wait, as they are, for the next one: they do not appear in a reply, and Ctrl-D is
// not lost. The line editor sets its own mode for every line, and leaves the terminal as the program found it.
class TypeAhead {
 public:
  TypeAhead() : terminal_(::tcgetattr(STDIN_FILENO, &before_) == 0) {}
  ~TypeAhead() {
    if (terminal_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  TypeAhead(const TypeAhead&) = delete;
  TypeAhead& operator=(const TypeAhead&) = delete;

  void hold() const {
    if (!terminal_) return;
    termios held = before_;
    held.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &held);
  }

 private:
  termios before_{};
  bool terminal_;
};

using ReadLine = std::function<Input(bool continued, std::string& line)>;

// A line, and the next ones for as long as a backslash ends it. Interrupted: what had been typed in the last line.
Input read_message(const ReadLine& read_line, std::string& message) {
  message.clear();
  std::string line;
  while (true) {
    const Input input = read_line(!message.empty(), line);
    if (input == Input::interrupted) message = line;
    if (input != Input::line) return input;
    message += line;
    if (!message.ends_with('\\')) return input;
    message.back() = '\n';
  }
}

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == text.npos; }

int talk(ChatSession& chat, ChatView& view, Interrupt& interrupt) {
  const TypeAhead type_ahead;
  LineEditor editor(data_directory() + "/chat_history", interrupt);
  const ReadLine read_line = [&](bool continued, std::string& line) {
    const Input input = editor.read(view.prompt(continued), line);
    type_ahead.hold();
    return input;
  };
  type_ahead.hold();
  chat.welcome();
  bool warned = false;
  while (!chat.wants_to_quit()) {
    std::string message;
    view.note("");
    const Input input = read_message(read_line, message);
    if (input == Input::end) break;
    if (input == Input::interrupted) {
      if (message.empty() && std::exchange(warned, true)) break;
      if (message.empty()) view.note("Ctrl-C again or Ctrl-D quits");
      continue;
    }
    warned = false;
    if (is_blank(message)) continue;
    editor.remember(message);
    if (const Result<void> handled = chat.handle(message); !handled) report(handled.error());
  }
  return 0;
}

Result<int> answer_piped(ChatSession& chat) {
  const ReadLine read_line = [](bool, std::string& line) {
    if (!std::getline(std::cin, line)) return Input::end;
    if (line.ends_with('\r')) line.pop_back();
    return Input::line;
  };
  std::string message;
  while (!chat.wants_to_quit()) {
    const Input input = read_message(read_line, message);
    if (!is_blank(message)) LILY_CHECK(chat.handle(message));
    if (chat.was_interrupted()) return interrupted_code;
    if (input == Input::end) break;
  }
  return 0;
}

Result<int> answer_once(ChatSession& chat, const std::string& prompt) {
  LILY_CHECK(chat.answer(prompt));
  return chat.was_interrupted() ? interrupted_code : 0;
}

}  // namespace

Result<int> run_chat(Engine& engine, const ChatSettings& settings) {
  const bool interactive = !settings.prompt && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  ChatView view(ViewStyle::of_terminal(interactive));
  Interrupt interrupt(interactive ? Interrupt::Catch::always : Interrupt::Catch::once);
  LILY_TRY(ChatSession chat, ChatSession::create(engine, settings, view, interrupt));
  if (settings.prompt) return answer_once(chat, *settings.prompt);
  return interactive ? talk(chat, view, interrupt) : answer_piped(chat);
}

Command chat_command(CLI::App& app) {
  const auto settings = std::make_shared<ChatSettings>();
  CLI::App* command = app.add_subcommand("chat", "Talk to the model");
  add_model_options(*command, settings->model);
  add_context_option(*command, settings->model);
  command->add_option("-p,--prompt", settings->prompt, "Answer this and leave; else every line of input is a message");
  command->add_option("--system", settings->system, "System message");
  command->add_flag("--no-think", settings->no_think, "Answer at once, without thinking first");
  add_sampling_options(*command, settings->sampling);
  return {command, [settings] {
            Result<Engine> engine = load_engine(settings->model, NeedTokenizer::yes);
            if (!engine) return report(engine.error());
            if (const Result<void> usable = check_chat(*engine); !usable) return report(usable.error());
            const Result<int> code = run_chat(*engine, *settings);
            return code ? *code : report(code.error());
          }};
}

}  // namespace lily::cli
