"""
How each provider's SDKs are pointed elsewhere: the variables that they read, or the line of code where they read none.

Only what an SDK was seen to read stands here. `vidrelay env` and `vidrelay run` are made of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vidrelay.providers.registry import providers


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdk:
    """
    One provider's SDKs.

    `bases` are the variables that take a base address, `path` what stands in it behind the door's own address. `hosts`
    are those of an SDK that puts `https://` before what they hold, each with what stands behind the door's place in it.
    `keys` take the key; `unset` are other variables with a key, which must not be there. `code` is what must be said in
    the program, where variables do not suffice: `{base}` stands for the base address, `{key}` for the key, and
    `{keyed}` for the base address with the door's own key in it, which an account may have; `keyed` is said instead
    where it has that.
    """

    bases: tuple[str, ...] = ()
    path: str = ""
    hosts: Mapping[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    code: str = ""
    keyed: str = ""

    @property
    def needs_tls(self) -> bool:
        """
        Whether it speaks https only.
        """
        return bool(self.hosts)


_PLAIN = 'send "Authorization: Bearer {key}" to {base}'
"""For a provider whose SDK the relay cannot answer, or that has none."""

SDKS: Mapping[str, Sdk] = {
    "openai": Sdk(bases=("OPENAI_BASE_URL",), path="/v1", keys=("OPENAI_API_KEY",)),
    "replicate": Sdk(bases=("REPLICATE_BASE_URL",), keys=("REPLICATE_API_TOKEN",)),
    "fal": Sdk(
        hosts={"FAL_QUEUE_RUN_HOST": "", "FAL_RUN_HOST": "/run"},
        keys=("FAL_KEY",),
        unset=("FAL_KEY_ID", "FAL_KEY_SECRET"),
        code='for uploads: fal_client.client.REST_URL = fal_client.client.CDN_URL = "{base}"',
    ),
    "runway": Sdk(bases=("RUNWAYML_BASE_URL",), keys=("RUNWAYML_API_SECRET",)),
    "luma": Sdk(bases=("LUMAAI_BASE_URL",), path="/dream-machine/v1", keys=("LUMAAI_API_KEY",)),
    "luma-agents": Sdk(bases=("LUMA_BASE_URL",), path="/v1", keys=("LUMA_AGENTS_API_KEY",)),
    "google": Sdk(bases=("GOOGLE_GEMINI_BASE_URL",), keys=("GOOGLE_API_KEY", "GEMINI_API_KEY")),
    "xai": Sdk(path="/v1", keys=("XAI_API_KEY",), code=_PLAIN),
    "openrouter": Sdk(
        path="/api/v1",
        keys=("OPENROUTER_API_KEY",),
        code='OpenRouter(api_key=os.environ["OPENROUTER_API_KEY"], server_url="{base}")',
    ),
    "kling": Sdk(unset=("KLING_ACCESS_KEY", "KLING_SECRET_KEY"), code=_PLAIN),
    "minimax": Sdk(bases=("MINIMAX_API_HOST",), keys=("MINIMAX_API_KEY",)),
    "dashscope": Sdk(bases=("DASHSCOPE_HTTP_BASE_URL",), path="/api/v1", keys=("DASHSCOPE_API_KEY",)),
    "ark": Sdk(path="/api/v3", keys=("ARK_API_KEY",), code='Ark(base_url="{base}")'),
    "vidu": Sdk(keys=("VIDU_API_KEY",), code='send "Authorization: Token {key}" to {base}'),
    "zhipu": Sdk(
        bases=("ZHIPUAI_BASE_URL", "ZAI_BASE_URL"),
        path="/api/paas/v4",
        keys=("ZHIPUAI_API_KEY", "ZAI_API_KEY"),
    ),
    "new-api": Sdk(bases=("OPENAI_BASE_URL",), path="/v1", keys=("OPENAI_API_KEY",)),
    "comfyui": Sdk(
        code='its server is {base}, with "Authorization: Bearer {key}"; for a program that can send no key, say '
        "door_key = true in the account: then it is {keyed}",
        keyed='its server is {keyed}; a program that can send a key takes {base}, with "Authorization: Bearer {key}"',
    ),
}


def sdk_of(provider: str) -> Sdk | None:
    """
    How the SDKs of that provider are pointed at its door; None for a provider without a door.
    """
    known = providers().get(provider)
    if known is None or known.door is None:
        return None
    return SDKS.get(provider, Sdk(code=_PLAIN))


def needs_tls(provider: str) -> bool:
    """
    Whether the SDKs of that provider reach its door over https only.
    """
    sdk = sdk_of(provider)
    return sdk is not None and sdk.needs_tls
