"""Runs a command on a pseudoterminal: terminal.py COLUMNS ROWS COMMAND…

Standard input is typed there; standard output is the output of the terminal. It exits with the
status of the command.
"""

import fcntl
import os
import pty
import select
import struct
import sys
import termios

columns, rows, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", int(rows), int(columns), 0, 0))
    os.execvp(command[0], command)

sources = [0, terminal]
while terminal in sources:
    for source in select.select(sources, [], [])[0]:
        try:
            data = os.read(source, 65536)
        except OSError:  # The last program on the terminal has ended.
            data = b""
        if not data:
            sources.remove(source)
        while data:
            data = data[os.write(1 if source == terminal else terminal, data) :]

sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
