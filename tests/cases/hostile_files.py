"""YAML that a stranger may hand over: small, and costly to whoever fills in its aliases or echoes
what it holds."""


def yaml_bombs() -> dict[str, str]:
    """Each of them must be refused at once, with its file and in few words."""

    def chain(first: str, each: str, n: int = 30) -> str:
        later = (f"a{i}: &a{i} " + each.replace("*", f"*a{i - 1}") for i in range(1, n))
        return "\n".join([f"a0: &a0 {first}", *later])

    return {
        "lists": chain("[x, x, x]", "[*, *, *, *, *, *, *, *, *]"),
        "maps": chain("{k: x}", "{l: *, r: *}", 60),
        "merges": chain("{k: x}", "{<<: [*, *, *]}"),
        "merges that add keys": chain("{k: x}", "{<<: [*, *], more: *}"),
        "a long text 5,000 times": f"a: &a {'x' * 10_000}\nb: [{', '.join(['*a'] * 5000)}]",
        "brackets": "[" * 5000,
        "maps in maps": "{a: " * 5000,
        "lists in lists": "- " * 5000,
        "keys in keys": "? " * 5000,
        "deep lines": "\n".join(" " * i + "a:" for i in range(500)),
        "a list in itself": "a: &a [*a]",
        "a map in itself": "a: &a {b: *a}",
        "a merge of itself": "a: &a {<<: *a}",
        "a merge of what is around it": "&a {x: &b {<<: *a}}",
        "a set in itself": "&a !!set {? *a}",
        **{
            f"digits of {name}": f"name: {start}{digit * 10_000}"
            for name, start, digit in [
                ("ten", "", "9"), ("sixteen", "0x", "f"), ("eight", "0", "7"), ("two", "0b", "1"),
                ("sixty", "1", ":59"), ("a tag", "!!int ", "1"), ("a fraction", "1.", "0"),
            ]
        },
        "a number as a key": f"? 0x{'f' * 10_000}\n: 1",
        "a long key": f"? {'k' * 100_000}\n: 1",
        "a long key twice": f"? {'k' * 100_000}\n: 1\n? {'k' * 100_000}\n: 2",
        "a long alias": "a: *" + "a" * 100_000,
        "a long tag": "a: !" + "t" * 100_000 + " x",
        "many keys": "".join(f"k{i}: 1\n" for i in range(3000)),
        "a long file": "#" * 1_000_001,
    }  # fmt: skip
