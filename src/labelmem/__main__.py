"""``python -m labelmem`` is the command ``labelmem``."""

from labelmem.cli import main

if __name__ == "__main__":
    main()
