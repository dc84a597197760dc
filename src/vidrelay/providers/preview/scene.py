"""
What a prompt's words say about the picture: place, hour, weather, who is in it, how the camera moves.

English words are looked up whole (a plural too), Chinese ones wherever they stand. Where the prompt is silent, the
seed decides.
"""

import re
from dataclasses import dataclass

from vidrelay.providers.preview.chance import Dice

_PLACES = {
    "space": "space galaxy nebula planet asteroid cosmos orbit astronaut 太空 宇宙 星系 星云 行星 银河",
    "sea": "sea ocean water lake river wave beach coast shore island harbour harbor surf pond 海 湖 江 河 水 浪 港 岛",
    "city": "city street town building skyscraper downtown rooftop neon cyberpunk tokyo shanghai traffic taxi urban "
    "城 街 楼 都市 霓虹 赛博 上海 北京",
    "forest": "forest wood tree jungle pine oak bamboo woodland grove deer fox bear 森林 树 林 竹 鹿 狐 熊",
    "desert": "desert dune sand sahara camel canyon mars 沙漠 沙丘 骆驼 戈壁 火星",
    "mountains": "mountain peak alps cliff valley himalaya hill glacier volcano 山 峰 谷 崖 雪山 火山",
    "meadow": "meadow field garden grass flower farm village park prairie countryside horse sheep 草 花 田 园 村 牧 马",
}
_HOURS = {
    "night": "night midnight moon moonlit star dark lantern neon aurora firework firefly 夜 月 星 灯笼 极光 烟花 萤火",
    "dusk": "sunset dusk evening twilight golden autumn fire 日落 黄昏 傍晚 夕阳 晚霞 秋",
    "dawn": "sunrise dawn morning daybreak spring 日出 黎明 早晨 清晨 朝阳 晨 春",
    "day": "day noon sunny sun bright summer afternoon blue 白天 中午 阳光 晴 夏 蓝天",
}
_WEATHERS = {
    "snow": "snow snowing snowy snowfall winter blizzard frost christmas 下雪 飘雪 雪花 雪夜 大雪 冬 冰",
    "rain": "rain rainy storm stormy drizzle monsoon thunder umbrella 雨 暴风 雷",
    "petals": "petal blossom cherry sakura wedding 花瓣 樱 梅",
    "leaves": "autumn foliage maple falling_leaves 秋 落叶 枫",
    "fireflies": "firefly fireflies magic magical fairy dream ember spark 萤火 魔法 梦 仙",
    "fog": "fog foggy mist misty haze smoke 雾 烟 霾",
}
_SUBJECTS = {
    "boat": "boat ship sail sailboat yacht sailing junk 船 帆 舟",
    "lighthouse": "lighthouse 灯塔",
    "whale": "whale dolphin 鲸 海豚",
    "birds": "bird gull seagull crane eagle swallow flock goose geese 鸟 鹤 鹰 雁 鸥 燕",
    "balloon": "balloon zeppelin airship 热气球 气球 飞艇",
    "rocket": "rocket spaceship spacecraft starship 火箭 飞船",
    "car": "car taxi truck vehicle drive driving bus 汽车 出租车 卡车 公交",
    "house": "house cottage cabin hut temple home farm village 房 屋 寺 庙 村 家",
    "animal": "cat dog fox wolf deer horse bear tiger lion rabbit sheep kitten puppy 猫 狗 狐 狼 鹿 马 熊 虎 狮 兔 羊",
    "figure": "man woman girl boy person child walker traveler traveller astronaut samurai dancer couple hiker monk "
    "robot knight 人 女孩 男孩 女 男 孩 旅 僧 侠 舞",
}
_CAMERAS = {
    "in": "zoom push dolly closeup approach 推 特写 拉近",
    "out": "pull reveal aerial drone wide 拉远 航拍 全景",
    "left": "left 左",
    "right": "pan right track tracking follow 摇 右 跟",
}
_NEIGHBOURS = {"boat": "sea", "whale": "sea", "lighthouse": "sea", "car": "city"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """
    What is to be drawn, in the vocabulary of `scenery` and `figures`.
    """

    place: str
    hour: str
    weather: str
    subjects: tuple[str, ...]
    camera: str


def read_scene(prompt: str, *, negative: str = "", seed: int = 0) -> Scene:
    """
    Read the scene from the prompt; what the negative prompt names is left out.
    """
    dice = Dice("scene", prompt, seed)
    unwanted = [name for table in (_WEATHERS, _SUBJECTS) for name in _found(table, negative)]
    subjects = tuple(name for name in _found(_SUBJECTS, prompt) if name not in unwanted)[:3]
    weather = next((name for name in _found(_WEATHERS, prompt) if name not in unwanted), "clear")
    places = _found(_PLACES, prompt) or [_NEIGHBOURS[name] for name in subjects if name in _NEIGHBOURS]
    drawn_place = dice.pick(("sea", "mountains", "meadow", "city", "forest"))
    drawn_hour = dice.pick(("day", "dusk", "dawn", "night"))
    hours = _found(_HOURS, prompt)
    return Scene(
        place=places[0] if places else drawn_place,
        hour="night" if places[:1] == ["space"] else (hours[0] if hours else drawn_hour),
        weather=weather,
        subjects=subjects,
        camera=(_found(_CAMERAS, prompt) or [dice.pick(("right", "left"))])[0],
    )


def _found(table: dict[str, str], text: str) -> list[str]:
    """
    The names whose words stand in the text, the one that is said first coming first.
    """
    low = text.lower()
    places = [(at, name) for name, words in table.items() if (at := _first(words, low)) is not None]
    return [name for _, name in sorted(places, key=lambda pair: pair[0])]


def _first(words: str, text: str) -> int | None:
    """
    Where the first of the words stands in the text, or None.
    """
    plain = [word.replace("_", " ") for word in words.split() if word.isascii()]
    whole = re.search(rf"\b(?:{'|'.join(plain)})(?:s|es)?\b", text) if plain else None
    spots = [text.find(word) for word in words.split() if not word.isascii()]
    spots = [spot for spot in spots if spot >= 0] + ([whole.start()] if whole else [])
    return min(spots, default=None)
