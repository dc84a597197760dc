"""
Which vocabulary speaks a dialect; one is loaded when it is wanted.
"""

from dataclasses import fields, replace
from importlib import import_module

from vidrelay.simulator.engine import Engine
from vidrelay.simulator.options import SimulatorOptions
from vidrelay.simulator.words.vocabulary import Words

_CLASSES = {
    **dict.fromkeys(("openai", "vllm-omni", "sglang"), "openai:OpenAiWords"),
    "replicate": "replicate:ReplicateWords",
    "fal": "fal:FalWords",
    "runway": "runway:RunwayWords",
    "luma": "luma:LumaWords",
    "luma-agents": "luma_agents:LumaAgentsWords",
    "google": "google:GoogleWords",
    "xai": "xai:XaiWords",
    "openrouter": "openrouter:OpenRouterWords",
    "kling": "kling:KlingWords",
    "minimax": "minimax:MiniMaxWords",
    "minimax-v2": "minimax:MiniMaxV2Words",
    "dashscope": "dashscope:DashScopeWords",
    "ark": "ark:ArkWords",
    "vidu": "vidu:ViduWords",
    "zhipu": "zhipu:ZhipuWords",
    "jimeng": "jimeng:JimengWords",
    "tencent": "tencent:TencentWords",
    "new-api": "new_api:NewApiWords",
    "comfyui": "comfyui:ComfyUiWords",
}


def words_class(dialect: str) -> type[Words]:
    """
    The vocabulary that speaks a dialect.
    """
    module, _, name = _CLASSES[dialect].partition(":")
    speaks: type[Words] = getattr(import_module(f"vidrelay.simulator.words.{module}"), name)
    return speaks


def words_of(engine: Engine, speaks: type[Words] | None = None) -> Words:
    """
    The vocabulary of the engine's dialect, or one that is in no catalogue; options that were left alone take the
    provider's own limits.
    """
    speaks = speaks or words_class(engine.options.dialect)
    usual = {one.name: one.default for one in fields(SimulatorOptions)}
    left = {name: value for name, value in speaks.DEFAULTS.items() if getattr(engine.options, name) == usual[name]}
    engine.options = replace(engine.options, **left)
    return speaks(engine)
