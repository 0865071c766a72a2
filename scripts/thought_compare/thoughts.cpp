// Reads {name: {"source": …, "samples": {key: {"text": …, "whole": …}}}} and writes what llama.cpp's server would tell of
// each answer: its text and its thoughts.

#include "chat.h"
#include "json.h"

#include <fstream>
#include <iostream>
#include <sstream>

using json = common_json;

int main(int count, char ** words) {
    if (count != 3) {
        std::cerr << "thoughts GIVEN.json FOUND.json\n";
        return 1;
    }
    std::ifstream file(words[1]);
    std::stringstream whole;
    whole << file.rdbuf();
    const json given = json::parse(whole.str());
    json found = json::object();
    for (const auto & [name, one] : given.items()) {
        json made = json::object();
        for (const auto & [key, sample] : one.at("samples").items()) {
            json answer = json::object();
            try {
                auto templates = common_chat_templates_init(nullptr, one.at("source").get<std::string>(), "<s>", "</s>");
                common_chat_templates_inputs inputs;
                common_chat_msg user;
                user.role = "user";
                user.content = "Hello";
                inputs.messages = {user};
                inputs.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
                inputs.enable_thinking = true;
                const auto told = common_chat_templates_apply(templates.get(), inputs);
                common_chat_parser_params wanted(told);
                wanted.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
                if (!told.parser.empty()) wanted.parser.load(told.parser);
                const bool is_partial = !sample.at("whole").get<bool>();
                const auto read = common_chat_parse(sample.at("text").get<std::string>(), is_partial, wanted);
                answer["thought"] = read.reasoning_content;
                answer["text"] = read.content;
                answer["prompt"] = told.generation_prompt;
            } catch (const std::exception & failed) {
                answer["error"] = std::string(failed.what()).substr(0, 200);
            }
            made[key] = answer;
        }
        found[name] = made;
    }
    std::ofstream(words[2]) << found.dump_safe(1) << "\n";
    return 0;
}
