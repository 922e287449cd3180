"""Is it fit to be given away? Wheel and sdist are built, checked, installed and tried.

    python tools/release.py                  all of it, on this Python with the newest dependencies
    python tools/release.py --lowest         with the lowest NumPy and networkx allowed
    python tools/release.py --pins EXTRA...  only print the lowest versions allowed, for pip

Needs the packages build and twine, and an index that pip can reach. The wheel holds the package as
git has it and nothing else, with `py.typed`; the sdist holds what git has; what indexes show links
to no file. What was built is installed into an environment of its own, where a project of
`python -m graphgrad new` is trained.
"""

import argparse
import email
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = "_graphgrad_pytest.py"


def main():
    """Do it, and say what was found; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lowest", action="store_true", help="the lowest versions allowed")
    parser.add_argument("--pins", nargs="*", metavar="EXTRA", help="print these, and build nothing")
    given = parser.parse_args()
    if given.pins is not None:
        print(*lowest(*given.pins))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "dist")
        run(sys.executable, "-m", "build", "--outdir", built, ROOT)
        run(sys.executable, "-m", "twine", "check", "--strict", *sorted(built.iterdir()))
        (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
        wrong = wrong_in_wheel(names_in_wheel(wheel), tracked())
        wrong += wrong_in_sdist(names_in_sdist(sdist), tracked())
        wrong += wrong_in_description(description(wheel))
        print("\n".join(wrong) or "contents: as git has them")
        tried(wheel, Path(folder), lowest() if given.lowest else [])
    return 1 if wrong else 0


def run(*command, cwd=None):
    """Run a command; CalledProcessError where it fails."""
    subprocess.run([str(part) for part in command], check=True, cwd=cwd)


def tracked():
    """The files that git has."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, check=True)
    return set(listed.stdout.decode().splitlines())


def names_in_wheel(wheel):
    """The files in a wheel."""
    with zipfile.ZipFile(wheel) as files:
        return set(files.namelist())


def names_in_sdist(sdist):
    """The files in an sdist, from its folder on."""
    with tarfile.open(sdist) as files:
        return {m.name.partition("/")[2] for m in files.getmembers() if m.isfile()}


def wrong_in_wheel(names, files):
    """What is missing, and what should not be there."""
    package = {name for name in files if name.startswith("graphgrad/") or name == PLUGIN}
    beside = {name for name in names - package if ".dist-info/" not in name}
    wrong = [f"wheel lacks {name}" for name in sorted(package - names)]
    wrong += [f"wheel has {name}" for name in sorted(beside)]
    for needed in ("graphgrad/py.typed", "licenses/LICENSE", "entry_points.txt"):
        if not any(name.endswith(needed) for name in names):
            wrong.append(f"wheel lacks {needed}")
    return wrong


def wrong_in_sdist(names, files):
    """What is missing, and what should not be there."""
    wrong = [f"sdist lacks {name}" for name in sorted(files - names)]
    return wrong + [f"sdist has {name}" for name in sorted(names - files - {"PKG-INFO"})]


def description(wheel):
    """What package indexes show of a wheel."""
    with zipfile.ZipFile(wheel) as files:
        (name,) = (n for n in files.namelist() if n.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(files.read(name)).get_payload()


def wrong_in_description(text):
    """Links to files, which are not there."""
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [f"description links to {t}" for t in targets if (ROOT / t.partition("#")[0]).exists()]


def lowest(*extras):
    """`numpy==2.2`: the dependencies at their lower bounds, with those of extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds, pending = list(project["dependencies"]), list(extras)
    for extra in pending:
        for one in project["optional-dependencies"][extra]:
            others = re.fullmatch(r"graphgrad\[(.*)\]", one)
            if others:
                pending += others[1].split(",")
            else:
                bounds.append(one)
    return [one.replace(">=", "==") for one in bounds]


def tried(wheel, folder, pinned):
    """Install the wheel by itself, and train a new project with it."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, *pinned)
    run(python, "-m", "graphgrad", "doctor", cwd=folder)
    run(python, "-m", "graphgrad", "new", "tried", cwd=folder)
    run(python, "train.py", cwd=folder / "tried")


if __name__ == "__main__":
    sys.exit(main())
