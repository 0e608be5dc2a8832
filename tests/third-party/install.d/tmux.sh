# tmux from Debian's packages with the two libraries that only it needs, unpacked without root. Debian keeps one version of
# a package in a release, so that there is a second try with the one that it has now.
packages=(tmux=3.3a-3 libevent-core-2.1-7=2.1.12-stable-8 libutempter0=1.2.1-3)
if [ ! -x "$tools/tmux/usr/bin/tmux" ]; then
    rm -rf "$tools/tmux.new"
    mkdir "$tools/tmux.new"
    (
        cd "$tools/tmux.new"
        apt-get download "${packages[@]}" || { apt-get update && apt-get download "${packages[@]%%=*}"; }
        for package in *.deb; do dpkg-deb --extract "$package" .; done
    )
    rm -rf "$tools/tmux"
    mv "$tools/tmux.new" "$tools/tmux"
fi
(
    LD_LIBRARY_PATH=$(echo "$tools"/tmux/usr/lib/*-linux-gnu)
    export LD_LIBRARY_PATH
    "$tools/tmux/usr/bin/tmux" -V
)
