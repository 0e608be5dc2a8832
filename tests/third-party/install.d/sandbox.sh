# Bubblewrap from Debian's packages, unpacked without root. Debian keeps one version of a package in a release, so that
# there is a second try with the one that it has now.
version=0.8.0-2+deb12u1
if [ ! -x "$tools/bubblewrap/usr/bin/bwrap" ]; then
    rm -rf "$tools/bubblewrap.new"
    mkdir "$tools/bubblewrap.new"
    (
        cd "$tools/bubblewrap.new"
        apt-get download "bubblewrap=$version" || { apt-get update && apt-get download bubblewrap; }
        dpkg-deb --extract bubblewrap_*.deb .
    )
    rm -rf "$tools/bubblewrap"
    mv "$tools/bubblewrap.new" "$tools/bubblewrap"
fi
"$tools/bubblewrap/usr/bin/bwrap" --version
