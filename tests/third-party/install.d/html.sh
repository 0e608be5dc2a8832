# A browser, its driver, and a checker of accessibility, for the HTML report. The browser is Chromium's headless shell,
# packed into a package of the npm registry with the libraries that it needs.
npm_install playwright-core@1.65.1 @sparticuz/chromium@153.0.0 axe-core@4.14.1

browser=$tools/chromium-153.0.0
if [ ! -x "$browser/chromium" ]; then
    packed=$tools/npm/node_modules/@sparticuz/chromium/bin
    rm -rf "$browser.new"
    mkdir "$browser.new"
    for name in chromium.br al2023.tar.br fonts.tar.br swiftshader.tar.br; do
        node -e 'process.stdin.pipe(require("zlib").createBrotliDecompress()).pipe(process.stdout)' \
            <"$packed/$name" >"$browser.new/${name%.br}"
    done
    for name in al2023 fonts swiftshader; do
        tar -xf "$browser.new/$name.tar" -C "$browser.new"
        rm "$browser.new/$name.tar"
    done
    chmod +x "$browser.new/chromium"
    rm -rf "$browser"
    mv "$browser.new" "$browser"
fi
