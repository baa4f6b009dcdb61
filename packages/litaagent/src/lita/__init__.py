# SPDX-License-Identifier: AGPL-3.0-or-later
"""The ``lita`` command line: one module per topic, one function per command.

``main`` has the table of commands (``COMMANDS``) and imports only the one that is called. A command is a function that
takes its options, a configuration class, and returns the exit status; it imports what it needs when it runs.

================  ============================================================================
``main``          the entry point and the table of commands
``demo``          ``lita demo``: everything once at a small scale
``tournament``    ``lita tournament``, ``collect``, ``competitors``
``records``       ``lita records``, ``export-scml``
``arena``         ``lita arena``, ``tune``
``dataset``       ``lita dataset build``, ``stats``, ``export``
``training``      ``lita train``, ``train-online``, ``distill``, ``runs``
``agent``         ``lita explain``, ``export``, ``new-agent``
``dashboard``     ``lita serve``, ``report``
``hmasd``         ``lita hmasd train``, ``eval``, ``render``, ``settings``; needs the extra `hmasd`
``info``          ``lita info``, ``checkpoint``
================  ============================================================================
"""
