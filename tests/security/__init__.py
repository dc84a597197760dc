"""
A real relay process under attack: what section 1 of the checklist asks for that needs the whole of it.

    lives.py       a relay and a pretend provider as processes, and what the system tells of them
    requests.py    good calls, odd pieces, and what is made of them: the fuzzer's inputs, all drawn from one seed
    fuzz.py        sends them over real sockets, and counts answers, 5xx, hangs and memory
    proof.py       all of it at full size: `python tests/security/proof.py`

The checklist itself, with the test that holds each line, is docs/explanation/checklist.md.
"""
