"""What makes worlds reproducible, whatever the machine, its load, the process and the worlds before.

Modules:
    streams: One random stream for the world and one per seat, behind Python's and numpy's global generators.
    hashing: String hashing that is the same in every process.
    clock: Virtual time inside negotiations.
    isolation: Restores the state that agents keep in their modules before every world.
    silence: Suppresses agents' output.
"""
