"""
Addresses that must not be reached, in the spellings that have fooled other gates.
"""
# ruff: noqa: SIM905

BAD_HOSTS = """
evil.com evil.example.com example.com com cdn.example.com api.example.com.evil.com api.example.comm xapi.example.com
evilcdn.example.com a.evilcdn.example.com api.example.com. api.example.com.. .api.example.com api..example.com
-api.example.com api-.example.com api.example.com@evil.com evil.com@api.example.com user@api.example.com
user:pass@api.example.com @api.example.com :@api.example.com api.example.com%2eevil.com api%2eexample.com
api.example.com%00 %61pi.example.com api.example.com%40evil.com api.example.com%23 api.example.com%2f
ａｐｉ.example.com api。example.com api．example.com аpi.example.com api.exámple.com apí.example.com ⓐpi.example.com
api.example.com\u200b \u200bapi.example.com api\u00ad.example.com api.ex\u2024ample.com api.example.com\u202e
localhost LOCALHOST localhost. localhost.localdomain ｌｏｃａｌｈｏｓｔ ⓛocalhost 127.0.0.1 127.1 127.0.1 127 0 0.0.0.0
2130706433 0x7f000001 0x7f.1 0x7f.0x0.0x0.0x1 017700000001 0177.0.0.1 127.0.0.01 127.000.000.001 00127.0.0.1
127.0.0.1.
0x 0x0 1.2.3 1.2.3.4.5 256.1.1.1 1e3 10.0.0.1 10.1 192.168.0.1 172.16.0.1 169.254.169.254 0xa9fea9fe 2852039166
0251.0376.0251.0376 100.100.100.200 168.63.129.16 192.0.0.192 192.0.0.8 224.0.0.1 255.255.255.255 198.18.0.1 8.8.8.8
metadata.google.internal instance-data metadata kubernetes.default.svc host.docker.internal router.local
[::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:7f00:0001] [::127.0.0.1] [64:ff9b::7f00:1]
[2002:7f00:1::]
[2001:0:4136:e378:8000:63bf:3fff:fdd2] [fe80::1] [fe80::1%25eth0] [fe80::1%eth0] [fc00::1] [fd00::1] [ff02::1]
[::1]evil.com [2606:4700::1111] [::ffff:8.8.8.8] [1] [] [api.example.com] [::1 ::1] ::1 2606:4700::1111 [v1.x]
[::ffff:10.0.0.1]
127.0.0.1.nip.io 7f000001.nip.io spoofed.burpcollaborator.net localtest.me xn--api-example.com
""".split()

BAD_AUTHORITIES = [
    "api.example.com:80", "api.example.com:8443", "api.example.com:0", "api.example.com:", "api.example.com:0443",
    "api.example.com:443443", "api.example.com:99999", "api.example.com:-1", "api.example.com:+443",
    "api.example.com:4４3", "api.example.com:443:443", "api.example.com:443@evil.com", "api.example.com:x",
    "api.example.com: 443", "api.example.com :443", "api.example.com:443.", "api.example.com:0x1bb",
    "api.example.com:22",
]  # fmt: skip

BAD_URLS = [
    "", " ", "/", "//", "//api.example.com/x", "///api.example.com/x", "api.example.com", "api.example.com/x",
    "https:",
    "https:/", "https://", "https:///", "https:///x", "https:/api.example.com/x", "https:api.example.com/x",
    "https:\\\\api.example.com/x", "https:/\\api.example.com/x", "https://api.example.com\\@evil.com/",
    "https://api.example.com\\.evil.com/", "https://evil.com\\@api.example.com/", "https://api.example.com/\\evil",
    "https:\\api.example.com", "\\\\api.example.com\\x", "https://api.example.com\t/x", "https://api.exa\tmple.com/x",
    "https://api.exa\nmple.com/x", "https://api.exa\rmple.com/x", "ht\ntps://api.example.com/x",
    "\thttps://api.example.com/x",
    "https://api.example.com/x\n", "https://api.example.com/x\r\nHost: evil.com", "https://api.example.com/\x00",
    "https://api.example.com\x00.evil.com/", "https://\x00api.example.com/", "https://api.example.com/\x7f",
    "https://api.example.com/\x85", "https://api.example.com/\u2028", "https://api.example.com/\ud800",
    " https://api.example.com/x", "https://api.example.com/x ", "https:// api.example.com/",
    "https://api.example.com /",
    "https://api.example.com?@evil.com", "https://api.example.com#@evil.com/", "https://api.example.com?x=1",
    "https://api.example.com#x", "https://evil.com#@api.example.com/", "https://evil.com?@api.example.com/",
    "https://evil.com/@api.example.com/", "https://evil.com/https://api.example.com/",
    "https://evil.com;api.example.com/",
    "https://api.example.com;evil.com/", "https://api.example.com,evil.com/", "https://api.example.com&evil.com/",
    "https://api.example.com$evil.com/", "https://api.example.com'evil.com/", 'https://api.example.com"evil.com/',
    "https://api.example.com<evil.com/", "https://api.example.com|evil.com/", "https://api.example.com^evil.com/",
    "https://api.example.com`evil.com/", "https://api.example.com{evil.com/", "https://api.example.com*evil.com/",
    "https://api.example.com!evil.com/", "https://api.example.com(evil.com)/", "https://api.example.com+evil.com/",
    "https://api.example.com=evil.com/", "https://api.example.com~evil.com/", "https://api_example.com/",
    "file:///etc/passwd", "file://api.example.com/etc/passwd", "ftp://api.example.com/x",
    "gopher://api.example.com/x",
    "data:text/plain,x", "javascript:alert(1)", "blob:https://api.example.com/x", "ws://api.example.com/x",
    "wss://api.example.com/x", "httpx://api.example.com/x", "https+unix://api.example.com/x", "unix:///tmp/x",
    "dict://x:1/",
    "ldap://api.example.com/", "jar:https://api.example.com/x", "view-source:https://api.example.com/x",
    "h\u0442tps://api.example.com/",
    "ｈttps://api.example.com/x", "https：//api.example.com/x", "https:／／api.example.com/x",
    "https://api.example.com／x",
    "https://https://api.example.com/", "https://http:443/", "https://[api.example.com/", "https://api.example.com]/",
    "https://[::1", "https://::1]/", "https://[::1]:443@api.example.com/", "https://api.example.com:443\\@127.0.0.1/",
    "http://api.example.com:443/x", "http://api.example.com:8080/x", "http://127.0.0.1/", "http://localhost:8000/",
    "http://[::1]:80/", "http://169.254.169.254/latest/meta-data/", "https://169.254.169.254/latest/meta-data/",
    "https://api.example.com/" + "x" * 20_000, "https://" + "a" * 300 + ".cdn.example.com/",
    "https://" + "a" * 64 + ".cdn.example.com/",
    "https://*.cdn.example.com/", "https://.cdn.example.com/", "https://-.cdn.example.com/",
    "https://a_b.cdn.example.com/",
    "https://a..cdn.example.com/", "https://a.cdn.example.com./", "https://a.cdn.example.com.evil.com/",
    "https://a-cdn.example.com/",
]  # fmt: skip

TRICKY = [
    *(f"https://{host}/x" for host in BAD_HOSTS),
    *(f"http://{host}/x" for host in BAD_HOSTS if "api.example.com" not in host),
    *(f"https://{authority}/x" for authority in BAD_AUTHORITIES),
    *BAD_URLS,
]

NOT_PUBLIC = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 168.63.129.16
169.254.169.254 169.254.0.1 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.8 192.0.0.170 192.0.0.192 192.0.2.1
192.31.196.1 192.52.193.1
192.88.99.1 192.168.0.1 192.175.48.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.250
240.0.0.1 255.255.255.255 :: ::1 ::2 ::7f00:1 ::127.0.0.1 ::ffff:0.0.0.0 ::ffff:127.0.0.1 ::ffff:10.0.0.1
::ffff:169.254.169.254 ::ffff:192.168.1.1 ::ffff:224.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::10.0.0.1
64:ff9b::a9fe:a9fe 64:ff9b:1::1 64:ff9b:1::8.8.8.8 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1
2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:a00:1:: 2002:808:808:: 2620:4f:8000::1 3fff::1 5f00::1 fc00::1
fd12:3456::1
fe80::1 fe80::1%eth0 fec0::1 ff00::1 ff02::1 ff0e::1 4000::1 1::1 nonsense
""".split()
