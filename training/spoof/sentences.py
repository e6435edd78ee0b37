"""Sentences for the synthesizers: short, of many shapes, with digits and names as callers say them. Made from parts so that no text corpus is needed."""
import random

WHO = "my sister|the old captain|a young doctor|nobody in the office|our neighbour's cat|the night porter|every second caller|the bank|that tall stranger|a friend of Julia".split("|")
DID = "opened|could not find|was asking about|has already paid for|quietly repaired|brought back|wrote down|will never forget|finally sold|measured".split("|")
WHAT = "the blue garden gate|three boxes of oranges|a very long letter|her brother's violin|the password|this strange machine|two hundred tickets|an account in Geneva|the weather report|half of the bread".split("|")
WHEN = "before the rain began|on Thursday morning|without saying a word|because the train was late|in spite of the noise|as usual|at a quarter past seven|while everybody slept|for the first time|last year in October".split("|")
PHRASES = "my voice is my password|please connect me to an agent|yes, that is correct|no, thank you|I would like to check my balance|transfer fifty euros to my savings account".split("|")


def sentences(seed, count):
    chance = random.Random(seed)
    for _ in range(count):
        kind = chance.random()
        if kind < 0.55:
            yield f"{chance.choice(WHO)} {chance.choice(DID)} {chance.choice(WHAT)} {chance.choice(WHEN)}.".capitalize()
        elif kind < 0.8:
            yield "My number is " + ", ".join(" ".join(str(chance.randrange(10)) for _ in range(3)) for _ in range(3)) + "."
        else:
            yield chance.choice(PHRASES).capitalize() + ", " + chance.choice(WHEN) + "."


CHINESE_WHO = "我的姐姐|年轻的医生|隔壁的老先生|办公室里的同事|每一位客户|银行的经理|那个高个子的陌生人|小朋友们|夜班的司机|我们的老师".split("|")
CHINESE_WHEN = "昨天晚上|星期四早上|下雨之前|今年十月|七点一刻|大家睡着的时候|火车晚点以后|像往常一样|第一次见面时|去年冬天".split("|")
CHINESE_DID = "打开了花园的蓝色大门|写完了一封很长的信|找不到自己的密码|修好了这台奇怪的机器|买了三箱新鲜的橙子|卖掉了两百张门票|在上海开了一个账户|听完了天气预报|把小提琴送回了学校|忘记了回家的路".split("|")
CHINESE_PHRASES = "我的声音就是我的密码|请帮我转接人工服务|是的，完全正确|不用了，非常感谢|我想查询一下账户余额|请转五十块钱到我的储蓄账户".split("|")


def chinese(seed, count):
    """Three to eight seconds of speech each."""
    chance = random.Random(seed)
    for _ in range(count):
        kind = chance.random()
        if kind < 0.55:
            yield f"{chance.choice(CHINESE_WHEN)}，{chance.choice(CHINESE_WHO)}{chance.choice(CHINESE_DID)}。"
        elif kind < 0.8:
            yield "我的号码是" + "，".join("".join(chance.choice("零一二三四五六七八九") for _ in range(4)) for _ in range(3)) + "。"
        else:
            yield f"{chance.choice(CHINESE_PHRASES)}，{chance.choice(CHINESE_WHEN)}{chance.choice(CHINESE_DID)}。"


RUSSIAN_WHO = "моя сестра|молодой врач|старый сосед|коллега из банка|наша учительница|водитель ночного автобуса|высокий незнакомец|каждый клиент".split("|")
RUSSIAN_DID = "не помнит дорогу домой|читает прогноз погоды|снова открывает счёт в банке|ищет свой новый пароль|чинит эту странную машину|пишет длинное письмо|продаёт двести билетов|ждёт поезда на вокзале".split("|")
RUSSIAN_WHEN = "вчера вечером|в четверг утром|перед сильным дождём|прошлой зимой|в четверть восьмого|когда все уже спали|как обычно|после долгого опоздания поезда".split("|")


def russian(seed, count):
    chance = random.Random(seed)
    for _ in range(count):
        yield f"{chance.choice(RUSSIAN_WHEN)} {chance.choice(RUSSIAN_WHO)} {chance.choice(RUSSIAN_DID)}.".capitalize()
