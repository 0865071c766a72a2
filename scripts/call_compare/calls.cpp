// Reads {"tools": […], "templates": {name: {"source": …, "samples": {name: text}}}} and writes what llama.cpp's server
// would tell of each answer: its text, its thoughts and its calls.

#include "chat.h"
#include "json.h"

#include <fstream>
#include <iostream>
#include <sstream>

using json = common_json;

static bool ends_with(std::string text, std::string end) {
    while (!text.empty() && isspace((unsigned char) text.back())) text.pop_back();
    while (!end.empty() && isspace((unsigned char) end.back())) end.pop_back();
    return !end.empty() && text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

static json told_of(const common_chat_msg & answer) {
    json calls = json::array();
    for (const auto & call : answer.tool_calls) {
        json one = json::object();
        one["name"] = call.name;
        one["arguments"] = call.arguments;
        calls.push_back(one);
    }
    json found = json::object();
    found["content"] = answer.content;
    found["calls"] = calls;
    return found;
}

static common_chat_msg read(const common_chat_params & told, const std::string & sample, bool thinks) {
    common_chat_parser_params wanted(told);
    wanted.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
    if (!told.parser.empty()) wanted.parser.load(told.parser);
    const std::string thought = thinks ? "I think." + told.thinking_end_tags.front() : "";
    return common_chat_parse(thought + sample, /* is_partial = */ false, wanted);
}

// The first of these that it reads as an answer. Where the prompt opens a thought, the answer closes it first.
static json read_any(const common_chat_params & told, const json & samples) {
    std::string error;
    const bool may_think = !told.thinking_end_tags.empty();
    const bool opens = may_think && ends_with(told.generation_prompt, told.thinking_start_tag);
    for (const auto & sample : samples) {
        for (const bool thinks : {opens, !opens}) {
            if (thinks && !may_think) continue;
            try {
                const auto answer = read(told, sample.get<std::string>(), thinks);
                if (!answer.content.empty() || !answer.tool_calls.empty()) return told_of(answer);
            } catch (const std::exception & failed) {
                if (error.empty()) error = failed.what();
            }
        }
    }
    json found = json::object();
    found["error"] = error.empty() ? "no text and no call" : error.substr(0, 200);
    return found;
}

int main(int count, char ** words) {
    if (count != 3) {
        std::cerr << "calls GIVEN.json FOUND.json\n";
        return 1;
    }
    std::ifstream file(words[1]);
    std::stringstream whole;
    whole << file.rdbuf();
    const json given = json::parse(whole.str());
    json found = json::object();
    for (const auto & [name, one] : given.at("templates").items()) {
        json made = json::object();
        std::string error;
        common_chat_params told;
        try {
            auto templates = common_chat_templates_init(nullptr, one.at("source").get<std::string>(), "<s>", "</s>");
            common_chat_templates_inputs inputs;
            common_chat_msg user;
            user.role = "user";
            user.content = "Hello";
            inputs.messages = {user};
            inputs.tools = common_chat_tools_parse_oaicompat(given.at("tools"));
            inputs.parallel_tool_calls = true;
            inputs.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
            told = common_chat_templates_apply(templates.get(), inputs);
        } catch (const std::exception & failed) {
            error = failed.what();
        }
        for (const auto & [key, sample] : one.at("samples").items()) {
            json answer = json::object();
            if (error.empty()) {
                answer = read_any(told, sample);
            } else {
                answer["error"] = error.substr(0, 200);
            }
            made[key] = answer;
        }
        found[name] = made;
    }
    std::ofstream(words[2]) << found.dump_safe(1) << "\n";
    return 0;
}
