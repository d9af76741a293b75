/* Buffered streams. */

/* A call whose result is bytes, done or not: no error at the end of a file. */
#define RB(name, path, asked, done, call)                                                            \
    ({                                                                                               \
        __typeof__(call) result_ = (call);                                                           \
        (void)result_;                                                                               \
        say(name, path, asked, 0, 0, done, 0);                                                       \
    })
/* Elements. */
#define RN(name, path, size, count, call)                                                            \
    ({                                                                                               \
        size_t done_ = (call);                                                                       \
        say(name, path, (size) * (count), 0, size, (size)*done_, 0);                                 \
    })

static int any_list(int (*function)(FILE *, const char *, va_list), FILE *file, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int result = function(file, format, values);
    va_end(values);
    return result;
}

static int any_checked(FILE *file, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int result = HIDDEN(int, "__vfprintf_chk", FILE *, int, const char *, va_list)(file, 1, format, values);
    va_end(values);
    return result;
}

static void stream_writes(const char *s)
{
    FILE *f = RF("fopen", s, fopen(s, "w+"));
    RF("fopen", P("missing"), fopen(P("missing"), "r"));
    RF("fopen", "", fopen(BAD, "?"));
    R("setvbuf", s, 4096, 0, _IOFBF, setvbuf(f, 0, _IOFBF, 4096));
    RN("fwrite", s, 4, 5, fwrite("0123456789abcdefghij", 4, 5, f));
    RN("fwrite_unlocked", s, 1, 4, fwrite_unlocked("klmn", 1, 4, f));
    R("fflush", s, 0, 0, 0, fflush(f));
    R("fflush_unlocked", s, 0, 0, 0, fflush_unlocked(f));
    RB("fputc", s, 1, 1, fputc('a', f));
    RB("putc", s, 1, 1, putc('b', f));
    RB("_IO_putc", s, 1, 1, HIDDEN(int, "_IO_putc", int, FILE *)('c', f));
    RB("fputc_unlocked", s, 1, 1, fputc_unlocked('d', f));
    RB("putc_unlocked", s, 1, 1, putc_unlocked('\n', f));
    RB("putw", s, 4, 4, putw(0x31323334, f));
    R("fputs", s, 6, 0, 0, fputs("hello\n", f) < 0 ? -1 : 6);
    R("fputs_unlocked", s, 6, 0, 0, fputs_unlocked("world\n", f) < 0 ? -1 : 6);
    R("fprintf", s, 0, 0, 0, fprintf(f, "%d %s %.3f %ld %d %d %d %f\n", 42, "x", 1.5, 7L, 1, 2, 3, 2.25));
    R("__fprintf_chk", s, 0, 0, 0, HIDDEN(int, "__fprintf_chk", FILE *, int, const char *, ...)(f, 1, "%s %g %d\n", "checked", 0.5, 9));
    R("vfprintf", s, 0, 0, 0, any_list(vfprintf, f, "%d %f\n", 5, 3.5));
    R("__vfprintf_chk", s, 0, 0, 0, any_checked(f, "%d %f\n", 6, 4.5));
    R("fclose", s, 0, 0, 0, fclose(f));
}

static void stream_reads(const char *s)
{
    char bytes[256], *text = 0;
    size_t room = 0;
    FILE *f = RF("fopen64", s, fopen64(s, "r"));
    RN("fread", s, 2, 4, fread(bytes, 2, 4, f));
    RN("fread_unlocked", s, 1, 4, fread_unlocked(bytes, 1, 4, f));
    RN("__fread_chk", s, 1, 4, HIDDEN(size_t, "__fread_chk", void *, size_t, size_t, size_t, FILE *)(bytes, 256, 1, 4, f));
    RN("__fread_unlocked_chk", s, 1, 4, HIDDEN(size_t, "__fread_unlocked_chk", void *, size_t, size_t, size_t, FILE *)(bytes, 256, 1, 4, f));
    RB("fgetc", s, 1, 1, fgetc(f));
    RB("getc", s, 1, 1, getc(f));
    RB("_IO_getc", s, 1, 1, HIDDEN(int, "_IO_getc", FILE *)(f));
    RB("fgetc_unlocked", s, 1, 1, fgetc_unlocked(f));
    RB("getc_unlocked", s, 1, 1, getc_unlocked(f));
    R("ungetc", s, 0, 0, 0, ungetc('q', f));
    RB("fgets", s, 4, 3, fgets(bytes, 4, f));
    RB("__fgets_chk", s, 3, 2, HIDDEN(char *, "__fgets_chk", char *, size_t, int, FILE *)(bytes, 256, 3, f));
    RB("getw", s, 4, 4, getw(f));
    RB("fgets_unlocked", s, 100, 6, fgets_unlocked(bytes, 100, f));
    RB("__fgets_unlocked_chk", s, 100, 6, HIDDEN(char *, "__fgets_unlocked_chk", char *, size_t, int, FILE *)(bytes, 256, 100, f));
    must(!strcmp(bytes, "world\n"), "a line is another one");
    int number, second;
    char word[32];
    double real;
    R("fscanf", s, 0, 0, 0, HIDDEN(int, "fscanf", FILE *, const char *, ...)(f, "%d %31s %lf", &number, word, &real));
    must(number == 42 && !strcmp(word, "x") && real == 1.5, "fscanf");
    R("__isoc99_fscanf", s, 0, 0, 0, HIDDEN(int, "__isoc99_fscanf", FILE *, const char *, ...)(f, "%d %d", &number, &second));
    must(number == 7 && second == 1, "fscanf");
    R("vfscanf", s, 0, 0, 0, any_list(HIDDEN(int, "vfscanf", FILE *, const char *, va_list), f, "%d", &number));
    R("__isoc99_vfscanf", s, 0, 0, 0, any_list(HIDDEN(int, "__isoc99_vfscanf", FILE *, const char *, va_list), f, "%d %lf\n", &number, &real));
    must(real == 2.25, "vfscanf");
    RB("getline", s, 14, 14, getline(&text, &room, f));
    RB("getdelim", s, 2, 2, getdelim(&text, &room, ' ', f));
    RB("__getdelim", s, 9, 9, HIDDEN(ssize_t, "__getdelim", char **, size_t *, int, FILE *)(&text, &room, '\n', f));
    RB("getline", s, 11, 11, getline(&text, &room, f));
    RB("getline", s, 0, 0, getline(&text, &room, f));
    R("feof", s, 0, 0, 0, feof(f));
    R("ferror", s, 0, 0, 0, ferror(f));
    RV("clearerr", s, clearerr(f));
    RB("fgetc", s, 1, 0, fgetc(f));
    free(text);
    R("fclose", s, 0, 0, 0, fclose(f));
}

static void stream_places(const char *s)
{
    char bytes[32], *text = 0;
    size_t room = 0;
    fpos_t place;
    fpos64_t place64;
    int fd = R("open", s, 0, 0, O_RDWR, open(s, O_RDWR));
    FILE *f = RF("fdopen", s, fdopen(fd, "r+"));
    R("fseek", s, 0, 10, SEEK_SET, fseek(f, 10, SEEK_SET));
    R("fseek", s, 0, -10, SEEK_SET, fseek(f, -10, SEEK_SET));
    R("fseeko", s, 0, 4, SEEK_CUR, fseeko(f, 4, SEEK_CUR));
    R("fseeko64", s, 0, -4, SEEK_END, fseeko64(f, -4, SEEK_END));
    R("ftell", s, 0, 0, 0, ftell(f));
    R("ftello", s, 0, 0, 0, ftello(f));
    R("ftello64", s, 0, 0, 0, ftello64(f));
    R("fgetpos", s, 0, 0, 0, fgetpos(f, &place));
    R("fgetpos64", s, 0, 0, 0, fgetpos64(f, &place64));
    RV("rewind", s, rewind(f));
    R("fsetpos", s, 0, 0, 0, fsetpos(f, &place));
    R("fsetpos64", s, 0, 0, 0, fsetpos64(f, &place64));
    RV("flockfile", s, flockfile(f));
    R("ftrylockfile", s, 0, 0, 0, ftrylockfile(f));
    RV("funlockfile", s, funlockfile(f));
    RV("funlockfile", s, funlockfile(f));
    f = RF("freopen", P("b"), freopen(P("b"), "r", f));
    RB("fgetc", P("b"), 1, 1, fgetc(f));
    f = RF("freopen64", s, freopen64(s, "r", f));
    /* Characters cannot be put into it: an error, not an end. */
    errno = 0;
    must(fputc('x', f) == EOF && errno == EBADF, "fputc");
    say("fputc", s, 1, 0, 0, -1, EBADF);
    R("fclose", s, 0, 0, 0, fclose(f));
    FILE *made = tmpfile();
    must(made != 0, "tmpfile");
    say("tmpfile", stable ? "" : link_of(fileno(made)), 0, 0, 0, fileno(made), 0);
    R("fclose", stable ? "" : link_of(fileno(made)), 0, 0, 0, fclose(made));
    made = tmpfile64();
    must(made != 0, "tmpfile64");
    say("tmpfile64", stable ? "" : link_of(fileno(made)), 0, 0, 0, fileno(made), 0);
    R("fclose", stable ? "" : link_of(fileno(made)), 0, 0, 0, fclose(made));
    made = fmemopen(bytes, 32, "w");
    must(made != 0, "fmemopen");
    say("fmemopen", "", 0, 0, 0, -1, 0);
    RB("fputc", "", 1, 1, fputc('x', made));
    R("fclose", "", 0, 0, 0, fclose(made));
    made = open_memstream(&text, &room);
    must(made != 0, "open_memstream");
    say("open_memstream", "", 0, 0, 0, -1, 0);
    RN("fwrite", "", 1, 3, fwrite("abc", 1, 3, made));
    R("fclose", "", 0, 0, 0, fclose(made));
    must(room == 3 && !strcmp(text, "abc"), "open_memstream");
    free(text);
}

static void streams(void)
{
    const char *s = P("s");
    stream_writes(s);
    stream_reads(s);
    stream_places(s);
}

static int any_output(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int result = vprintf(format, values);
    va_end(values);
    return result;
}

static int any_checked_output(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int result = HIDDEN(int, "__vprintf_chk", int, const char *, va_list)(1, format, values);
    va_end(values);
    return result;
}

/* Standard input and output, which the process was given. */
static void streams_alone(void)
{
    const char *in = P("in"), *out = P("out");
    RB("getchar", in, 1, 1, getchar());
    RB("getchar_unlocked", in, 1, 1, getchar_unlocked());
    RB("putchar", out, 1, 1, putchar('p'));
    RB("putchar_unlocked", out, 1, 1, putchar_unlocked('\n'));
    R("puts", out, 5, 0, 0, puts("puts") < 0 ? -1 : 5);
    R("printf", out, 0, 0, 0, printf("%d %.2f %s\n", 1, 2.5, "three"));
    R("__printf_chk", out, 0, 0, 0, HIDDEN(int, "__printf_chk", int, const char *, ...)(1, "%d %.2f\n", 4, 5.5));
    R("vprintf", out, 0, 0, 0, any_output("%d\n", 6));
    R("__vprintf_chk", out, 0, 0, 0, any_checked_output("%d\n", 7));
    R("fflush", out, 0, 0, 0, fflush(stdout));
    /* Here alone: it writes out streams that other threads use unlocked, and glibc stands still when one
     * of them is in freopen (each holds a lock that the other wants). */
    R("fflush", "", 0, 0, 0, fflush(0));
}
