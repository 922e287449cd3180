"""Is it fit to be given away? Wheel and sdist are built, checked, installed and tried.

    python tools/release.py                       on this Python with the newest dependencies
    python tools/release.py --pythons 3.11 3.13   on these: on the path, or kept by pyenv
    python tools/release.py --lowest              with the lowest NumPy and networkx allowed
    python tools/release.py --pins EXTRA...       only print the lowest versions allowed, for pip

Needs the packages build and twine, and an index that pip can reach. The wheel holds the package as
git has it and nothing else, with `py.typed`; the sdist holds what git has, and a wheel of it the
same files; what indexes show links to no file. The wheel is installed into an environment of its
own, with the extra `demo` where all of that has wheels: the demo runs there, and a project of
`python -m graphgrad new` is trained and tested.
"""

import argparse
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = "_graphgrad_pytest.py"


def main():
    """Do it, and say what was found; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lowest", action="store_true", help="the lowest versions allowed")
    parser.add_argument("--pythons", nargs="+", metavar="3.N", help="versions to install it on")
    parser.add_argument("--pins", nargs="*", metavar="EXTRA", help="print these, and build nothing")
    given = parser.parse_args()
    if given.pins is not None:
        print(*lowest(*given.pins))
        return 0
    pythons = {v: interpreter(v) for v in given.pythons or ()} or {"this Python": sys.executable}
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "dist")
        run(sys.executable, "-m", "build", "--sdist", "--wheel", "--outdir", built, ROOT)
        run(sys.executable, "-m", "twine", "check", "--strict", *sorted(built.iterdir()))
        (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
        wrong = wrong_in_wheel(names_in_wheel(wheel), tracked())
        wrong += wrong_in_sdist(names_in_sdist(sdist), tracked())
        wrong += wrong_in_description(description(wheel))
        again = wheel_of(sdist, Path(folder, "again"))
        wrong += wrong_in_rebuilt(names_in_wheel(wheel), names_in_wheel(again))
        print("\n".join(wrong) or "contents: as git has them, and in a wheel of the sdist")
        for version, python in pythons.items():
            print(f"== {version}", flush=True)
            home = Path(folder, version.replace(" ", "-"))
            home.mkdir()
            tried(python, wheel, home, lowest() if given.lowest else [])
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


def wheel_of(sdist, folder):
    """The wheel that is built of an sdist."""
    with tarfile.open(sdist) as files:
        files.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def wrong_in_rebuilt(names, again):
    """What a wheel of the sdist has, and the wheel has not, or the other way."""
    wrong = [f"a wheel of the sdist lacks {name}" for name in sorted(names - again)]
    return wrong + [f"a wheel of the sdist has {name}" for name in sorted(again - names)]


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


def interpreter(version):
    """A Python of that version: on the path, or kept by pyenv; SystemExit where there is none."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = [shutil.which(f"python{version}"), *sorted(kept.glob(f"{version}.*/bin/python"))]
    for python in filter(None, found):
        if (
            subprocess.run([python, "-m", "ensurepip", "--version"], capture_output=True).returncode
            == 0
        ):
            return python
    raise SystemExit(f"no Python {version} on the path or in {kept}")


def tried(python, wheel, folder, pinned):
    """Install the wheel by itself, run the demo, and train and test a new project."""
    run(python, "-m", "venv", folder / "venv")
    python = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = [python, "-m", "pip", "install", "--quiet"]
    run(*pip, wheel, *pinned)
    run(python, "-m", "graphgrad", "doctor", cwd=folder)
    if runs(*pip, "--only-binary", ":all:", f"{wheel}[demo]", *pinned):
        run(python, "-m", "graphgrad", "demo", "--out", folder / "demo", cwd=folder)
        if not (folder / "demo" / "index.html").stat().st_size:
            raise SystemExit("the demo wrote nothing")
    else:
        print("some of the extra demo has no wheel here: the demo is left out")
    run(python, "-m", "graphgrad", "new", "tried", cwd=folder)
    run(python, "train.py", cwd=folder / "tried")
    run(*pip, "pytest")
    run(python, "-m", "pytest", "-q", cwd=folder / "tried")


def runs(*command):
    """Whether a command succeeds."""
    return subprocess.run([str(part) for part in command]).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
