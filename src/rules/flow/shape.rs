//! The shape of a source file, which the interpreter reads. It is the same for every language.
//!
//! Expressions are in an arena and refer to each other by number. Statements own their blocks. A
//! lowering (`lower/<language>.rs`) makes the shape from the syntax tree. A node that a lowering
//! does not support becomes [`ExprKind::Unknown`] with the expressions inside, so that data still
//! passes through it.

use std::collections::HashMap;
use std::rc::Rc;

/// An interned word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Sym(pub(super) u32);

/// An index into [`Module::exprs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ExprId(pub(super) u32);

/// An index into [`Module::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FunctionId(pub(super) u32);

/// An index into [`Module::classes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClassId(pub(super) u32);

/// Bytes of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ByteSpan {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// An expression.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub(super) span: ByteSpan,
    pub(super) kind: ExprKind,
}

/// The kind of an expression.
#[derive(Clone, Debug)]
pub(super) enum ExprKind {
    /// Any other expression. The result has the data of all parts.
    Unknown(Vec<ExprId>),
    /// A variable, function, class or module: `x`, `$_GET`, `params`. `self`/`this` is
    /// [`ExprKind::This`].
    Name(Sym),
    /// `self`, `this`, `$this`, `@` of Ruby's `@x`.
    This,
    /// The parent's part of this object: `super()`, `super`, `parent`, `base`.
    Super,
    /// `of.name`, `of->name`, `Of::name`, `of?.name`.
    Member {
        of: ExprId,
        name: Sym,
    },
    /// `of[key]`.
    Index {
        of: ExprId,
        key: ExprId,
    },
    /// `callee(args)`. The receiver is the `of` of a callee that is a `Member`.
    Call {
        callee: ExprId,
        args: Vec<Arg>,
    },
    /// `new Class(args)`. In Python, Ruby, Kotlin and Go, a plain call.
    New {
        class: ExprId,
        args: Vec<Arg>,
    },
    Text(Rc<str>),
    Int(i64),
    Float(f64),
    Bool(bool),
    Null,
    /// A regular expression literal, without delimiters.
    Regex(Rc<str>),
    /// Parts that become one text: concatenation, template, f-string. Constant parts are `Text`.
    Concat(Vec<ExprId>),
    Binary {
        op: Op,
        left: ExprId,
        right: ExprId,
    },
    Not(ExprId),
    /// `-x`, `+x`, `~x`: a number.
    Negate(ExprId),
    Conditional {
        test: ExprId,
        yes: ExprId,
        no: ExprId,
    },
    /// A list, tuple, dict, object, hash or array literal.
    Collection(Vec<CollectionItem>),
    /// A function literal, lambda, closure, block.
    Function(FunctionId),
    /// A conversion to a named type: `(int) x`, `x as T`.
    Cast {
        of: ExprId,
        ty: Sym,
    },
    /// Same data: `await x`, `(x)`, `x!`, `&x`, `*x`, `...x`.
    Pass(ExprId),
    /// `target = value`, also in a statement. `op`: `target += value`. The target is a `Name`,
    /// `Member`, `Index`, or a `Collection` of targets (destructuring; with keys for objects).
    Assign {
        target: ExprId,
        op: Option<Op>,
        value: ExprId,
    },
    /// `[element for target in iterable if test]`.
    Comprehension {
        target: ExprId,
        iterable: ExprId,
        tests: Vec<ExprId>,
        element: ExprId,
    },
    /// Statements and then a value: `if`, `try`, `when` as an expression with blocks.
    Block {
        body: CodeBlock,
        value: Option<ExprId>,
    },
    /// A choice with a value: Java's `switch`, Kotlin's `when`, PHP's `match`, C#'s `switch`.
    Match {
        subject: Option<ExprId>,
        arms: Vec<Arm>,
    },
    /// `x instanceof T`, `isinstance` as an operator, `x is T`.
    IsType {
        of: ExprId,
        ty: Sym,
    },
}

/// A branch of a [`ExprKind::Match`].
#[derive(Clone, Debug)]
pub(super) struct Arm {
    /// Empty: the default.
    pub(super) tests: Vec<ExprId>,
    pub(super) value: ExprId,
}

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// `+` where it may concatenate. `.` of PHP is `Concat`.
    Add,
    Sub,
    Mul,
    Div,
    /// `%`; in Python and Ruby also formats a text.
    Rem,
    And,
    Or,
    /// `a ?? b`, `a ?: b`: the result is one of the values.
    Else,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// `a in b`, `b` contains `a`.
    In,
    NotIn,
    /// `=~` of Ruby: a regular expression matches.
    Matches,
    /// Bit operations and other operators whose result is a number.
    Bits,
}

/// An argument.
#[derive(Clone, Debug)]
pub(super) struct Arg {
    /// `shell` of `shell=True`.
    pub(super) keyword: Option<Sym>,
    pub(super) value: ExprId,
    /// `*args`, `...args`, `**options`.
    pub(super) is_spread: bool,
}

/// An item of a collection literal.
#[derive(Clone, Debug)]
pub(super) struct CollectionItem {
    pub(super) key: Option<ExprId>,
    pub(super) value: ExprId,
    pub(super) is_spread: bool,
}

pub(super) type CodeBlock = Vec<Stmt>;

/// A statement.
#[derive(Clone, Debug)]
pub(super) struct Stmt {
    pub(super) span: ByteSpan,
    pub(super) kind: StmtKind,
}

/// The kind of a statement.
#[derive(Clone, Debug)]
pub(super) enum StmtKind {
    Expr(ExprId),
    /// A variable with its declared type: `String x = …;`, `x: int = …`, `var x T`. Without a type
    /// and with a value, an `Assign` expression does the same.
    Declare {
        target: ExprId,
        ty: Option<Sym>,
        value: Option<ExprId>,
    },
    If {
        test: ExprId,
        then: CodeBlock,
        otherwise: CodeBlock,
    },
    /// `while`, `for (;;)`, `do`. The initialization of a `for` is a statement before it; `update`
    /// runs after the body.
    While {
        test: Option<ExprId>,
        body: CodeBlock,
        update: CodeBlock,
        is_post_test: bool,
    },
    /// `for target in iterable`.
    Each {
        target: ExprId,
        key: Option<ExprId>,
        iterable: ExprId,
        body: CodeBlock,
    },
    Switch {
        subject: Option<ExprId>,
        cases: Vec<SwitchCase>,
        falls_through: bool,
    },
    Try {
        body: CodeBlock,
        catches: Vec<Catch>,
        finally: CodeBlock,
    },
    Return(Option<ExprId>),
    Throw(Option<ExprId>),
    Break,
    Continue,
    /// Binds the function's name.
    Function(FunctionId),
    Class(ClassId),
    Block(CodeBlock),
    /// `assert test`, `require(test)`: the statements after it run only if the test is true.
    Assert(ExprId),
}

/// A case of a `switch`.
#[derive(Clone, Debug)]
pub(super) struct SwitchCase {
    /// Empty: the default.
    pub(super) tests: Vec<ExprId>,
    pub(super) body: CodeBlock,
}

/// A `catch`, `except` or `rescue`.
#[derive(Clone, Debug)]
pub(super) struct Catch {
    pub(super) name: Option<Sym>,
    pub(super) ty: Option<Sym>,
    pub(super) body: CodeBlock,
}

/// A decorator, annotation or attribute: `@app.route("/x")`, `@RequestParam("q")`, `[HttpGet]`.
#[derive(Clone, Debug)]
pub(super) struct Annotation {
    /// The name or the path of it: a `Name` or `Member`.
    pub(super) name: ExprId,
    pub(super) args: Vec<Arg>,
}

/// A parameter.
#[derive(Clone, Debug, Default)]
pub(super) struct Param {
    pub(super) span: ByteSpan,
    /// None: destructured, see `pattern`.
    pub(super) name: Option<Sym>,
    /// A `Collection` of targets.
    pub(super) pattern: Option<ExprId>,
    /// The declared type, without type arguments: `HttpServletRequest`, `http.Request`.
    pub(super) ty: Option<Sym>,
    pub(super) default: Option<ExprId>,
    pub(super) marks: Vec<Annotation>,
    pub(super) is_variadic: bool,
}

/// A function, method or function literal. `self` and receivers are not parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct Function {
    pub(super) span: ByteSpan,
    pub(super) name: Option<Sym>,
    pub(super) params: Vec<Param>,
    pub(super) body: CodeBlock,
    pub(super) marks: Vec<Annotation>,
    /// The declared type of the result.
    pub(super) ty: Option<Sym>,
    /// Set by [`Module::add_class`].
    pub(super) class: Option<ClassId>,
    pub(super) is_static: bool,
    /// `__init__`, a Java constructor, `constructor`, `initialize`, `__construct`.
    pub(super) is_constructor: bool,
    /// The name that the body uses for the object, if it is not `This`: Go's receiver. It is bound
    /// to the object.
    pub(super) receiver: Option<Sym>,
    /// `@property`, `get x()`: reading the member calls it.
    pub(super) is_getter: bool,
    /// True: the last expression statement of the body is the result, without `return`. Ruby, and
    /// expression bodies of Kotlin, are lowered to `Return` instead.
    pub(super) returns_last: bool,
}

/// A field of a class.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: Sym,
    pub(super) ty: Option<Sym>,
    pub(super) value: Option<ExprId>,
    pub(super) marks: Vec<Annotation>,
}

/// A class, interface, object, struct, trait or module with functions.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    pub(super) span: ByteSpan,
    pub(super) name: Option<Sym>,
    /// Its base classes and interfaces, by name or path.
    pub(super) bases: Vec<Sym>,
    pub(super) marks: Vec<Annotation>,
    pub(super) fields: Vec<Field>,
    pub(super) methods: Vec<FunctionId>,
    /// Its values are constants of the file. Known for Java.
    pub(super) is_enum: bool,
    /// Other statements of the body: `before_action :x`, static blocks, nested classes.
    pub(super) body: CodeBlock,
}

/// `import path as alias`.
#[derive(Clone, Debug)]
pub(super) struct Import {
    /// The name in this file. `*`: everything in the path.
    pub(super) alias: Sym,
    /// Dotted: `flask.request`, `java.sql.Statement`, `os/exec`, `child_process`.
    pub(super) path: Sym,
}

/// A file.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) exprs: Vec<Expr>,
    pub(super) functions: Vec<Function>,
    pub(super) classes: Vec<Class>,
    pub(super) imports: Vec<Import>,
    pub(super) body: CodeBlock,
    /// True if a limit ended the lowering.
    pub(super) is_partial: bool,
    words: Vec<Rc<str>>,
    numbers: HashMap<Rc<str>, Sym>,
}

impl Module {
    /// Interns a word.
    pub(super) fn sym(&mut self, word: &str) -> Sym {
        if let Some(s) = self.numbers.get(word) {
            return *s;
        }
        let sym = Sym(u32::try_from(self.words.len()).unwrap_or(u32::MAX));
        let word: Rc<str> = word.into();
        self.words.push(Rc::clone(&word));
        self.numbers.insert(word, sym);
        sym
    }

    /// Returns the number of a word if it is interned.
    pub(super) fn find(&self, word: &str) -> Option<Sym> {
        self.numbers.get(word).copied()
    }

    /// Returns the word.
    pub(super) fn word(&self, sym: Sym) -> &str {
        self.words.get(sym.0 as usize).map_or("", |w| w)
    }

    /// Adds an expression.
    pub(super) fn add(&mut self, span: ByteSpan, kind: ExprKind) -> ExprId {
        let id = ExprId(u32::try_from(self.exprs.len()).unwrap_or(u32::MAX));
        self.exprs.push(Expr { span, kind });
        id
    }

    /// Returns an expression.
    pub(super) fn expr(&self, id: ExprId) -> &Expr {
        const NONE: &Expr = &Expr {
            span: ByteSpan { start: 0, end: 0 },
            kind: ExprKind::Null,
        };
        // The interner and the arena return only numbers that exist.
        self.exprs.get(id.0 as usize).unwrap_or(NONE)
    }

    /// Adds a function.
    pub(super) fn add_function(&mut self, function: Function) -> FunctionId {
        let id = FunctionId(u32::try_from(self.functions.len()).unwrap_or(u32::MAX));
        self.functions.push(function);
        id
    }

    /// Adds a class and gives its methods their class.
    pub(super) fn add_class(&mut self, class: Class) -> ClassId {
        let id = ClassId(u32::try_from(self.classes.len()).unwrap_or(u32::MAX));
        for method in &class.methods {
            if let Some(f) = self.functions.get_mut(method.0 as usize) {
                f.class = Some(id);
            }
        }
        self.classes.push(class);
        id
    }
}
