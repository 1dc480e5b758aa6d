"""A command with a child, a grandchild, a grandchild in a session of its own, and one in such a session whose parent
has ended. Each ignores TERM, writes its pid to FOLDER/NAME.pid, and the time, in nanoseconds since 1970, to FOLDER/NAME
every two milliseconds."""
import os
import signal
import sys
import time

folder = sys.argv[1]


def tick(name):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(os.path.join(folder, name + ".pid"), "w") as file:
        file.write(str(os.getpid()))
    ticks = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        os.write(ticks, b"%d\n" % time.time_ns())
        time.sleep(0.002)


if os.fork() == 0:
    if os.fork() == 0:
        tick("grandchild")
    if os.fork() == 0:
        os.setsid()
        tick("session")
    tick("child")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        # Its parent is about to end.
        tick("orphan")
    os._exit(0)
tick("command")
