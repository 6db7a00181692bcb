"""Which folders of the system are in the rules."""

from skep.worker.sandbox.rules import loader_folders


def test_the_loaders_folders_are_those_of_its_file_and_of_what_it_includes(tmp_path):
    (tmp_path / "conf.d").mkdir()
    main = tmp_path / "ld.so.conf"
    main.write_text("include conf.d/*.conf\n/opt/first  # ours\n\n")
    (tmp_path / "conf.d" / "driver.conf").write_text(f"/usr/local/nvidia/lib64\ninclude {main}\n")
    (tmp_path / "conf.d" / "other").write_text("/not/a/conf\n")
    found = [str(each) for each in loader_folders(main)]
    assert found == ["/opt/first", "/usr/local/nvidia/lib64"]


def test_without_the_loaders_file_there_are_none(tmp_path):
    assert not list(loader_folders(tmp_path / "absent"))
