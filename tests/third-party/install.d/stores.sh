# Redis from Debian's packages with the libraries that only it needs, unpacked without root, and a server with the
# interface of S3 from PyPI in an environment of its own. Debian keeps one version of a package in a release, so that
# there is a second try with the one that it has now.
packages=(redis-server=5:7.0.15-1~deb12u7 redis-tools=5:7.0.15-1~deb12u7 libjemalloc2=5.3.0-1 liblzf1=3.6-3 libatomic1)
if [ ! -x "$tools/redis/usr/bin/redis-server" ]; then
    rm -rf "$tools/redis.new"
    mkdir "$tools/redis.new"
    (
        cd "$tools/redis.new"
        apt-get download "${packages[@]}" || { apt-get update && apt-get download "${packages[@]%%=*}"; }
        for package in *.deb; do dpkg-deb --extract "$package" .; done
    )
    rm -rf "$tools/redis"
    mv "$tools/redis.new" "$tools/redis"
fi
(
    LD_LIBRARY_PATH=$(echo "$tools"/redis/usr/lib/*-linux-gnu)
    export LD_LIBRARY_PATH
    "$tools/redis/usr/bin/redis-server" --version
)
if [ ! -x "$tools/moto/bin/moto_server" ]; then
    rm -rf "$tools/moto"
    python3 -m venv "$tools/moto"
    "$tools/moto/bin/python" -m pip install --quiet --disable-pip-version-check 'moto[s3,server]==5.2.5'
fi
